// The inputs of one tag: one where its Input ID is fixed, else one for each combination of captures that fills it.
import { isInputId } from "../core/point.ts";
import type { Captures, TagId } from "../core/source.ts";
import type { Converter } from "./convert.ts";
import type { Feeder } from "./input-owners.ts";
import { InputState, type InputTag } from "./input-state.ts";
import { fillInput, placeholders } from "./input-template.ts";
import type { TagRule } from "./options.ts";
import { RefusedState } from "./refused-input.ts";
import type { ReportRule } from "./report.ts";

/** What the inputs of all tags of a source have in common: one object, since there may be 100,000 tags. */
export interface TagInputsParts {
  readonly source: string;
  /** Who has the Input ID of `state` if it may not be used: see `InputOwners`. */
  readonly claim: (state: InputState) => Feeder | undefined;
  /** Called once for each new state. Its captures are not kept: they are the driver's, which may forget them. */
  readonly opened: (state: InputState, tag: TagInputs, captures: Captures) => void;
  readonly refused: (state: RefusedState) => void;
  /** Another tag was refused the Input ID of this state. */
  readonly contested: (state: InputState) => void;
}

/** Most refused IDs that are remembered of a tag; further ones are counted, and tried again with each reading. */
const maxRefused = 100;

/** How the readings of tags are converted and reported: the same object for all tags whose rules say the same of it. */
export interface Processing {
  readonly converter: Converter;
  readonly report: ReportRule | undefined;
  /** Microseconds; 0: times stay as they are. */
  readonly alignUs: number;
}

/** The inputs of a tag whose Input ID has names in braces. */
interface TemplateInputs {
  readonly names: readonly string[];
  readonly byKey: Map<string, InputState | RefusedState>;
  /** A driver gives the same object for the same captures, so that most readings stop here. */
  readonly byCaptures: WeakMap<Captures, InputState | RefusedState>;
  last: { readonly captures: Captures; readonly state: InputState | RefusedState } | undefined;
  /** Counts readings of inputs beyond `maxInputs`. */
  beyondInputs: RefusedState | undefined;
  /** Counts readings of refused inputs beyond `maxRefused`. Not remembered for captures: the ID may become free. */
  beyondRefused: RefusedState | undefined;
  inputs: number;
  /** Refused inputs in `byKey`. */
  refusals: number;
}

/** A tag, made ready. Kept small: there may be 100,000 of them. */
export class TagInputs implements InputTag {
  readonly id: TagId;
  readonly rule: TagRule;
  readonly processing: Processing;
  readonly #parts: TagInputsParts;
  /** Undefined where the Input ID is fixed. */
  readonly #template: TemplateInputs | undefined;
  #only: InputState | RefusedState | undefined;

  constructor(id: TagId, rule: TagRule, processing: Processing, parts: TagInputsParts) {
    this.id = id;
    this.rule = rule;
    this.processing = processing;
    this.#parts = parts;
    const names = placeholders(rule.input);
    this.#template = names.length === 0 ? undefined : templateInputs(names);
  }

  get source(): string {
    return this.#parts.source;
  }

  get shared(): boolean {
    return this.rule.shared;
  }

  get keepsSameTime(): boolean {
    return this.rule.sameTime === "keep";
  }

  contested(state: InputState): void {
    this.#parts.contested(state);
  }

  /** Claims a fixed Input ID, before any reading. */
  claimFixed(): void {
    if (!this.#template) this.#only = this.#open("", {});
  }

  find(captures: Captures): InputState | RefusedState {
    if (this.#only) return this.#only;
    const template = this.#template;
    if (!template) return this.#resolve(captures);
    if (template.last?.captures === captures) return template.last.state;
    const state = template.byCaptures.get(captures) ?? this.#resolve(captures);
    if (state !== template.beyondRefused) template.last = { captures, state };
    return state;
  }

  /** Looks again at captures that were refused because another tag had the Input ID, which it has no longer. */
  findAgain(captures: Captures, refused: RefusedState): InputState | RefusedState {
    const template = this.#template;
    if (this.#only === refused) this.claimFixed();
    if (template) {
      template.last = undefined;
      template.byCaptures.delete(captures);
      for (const [key, state] of template.byKey)
        if (state === refused && template.byKey.delete(key)) template.refusals--;
      template.beyondRefused = undefined;
    }
    return this.find(captures);
  }

  /** How many `inputs` there are. */
  get size(): number {
    return this.#template ? this.#template.inputs : this.#only instanceof InputState ? 1 : 0;
  }

  *inputs(): Generator<InputState, void, undefined> {
    if (this.#only instanceof InputState) yield this.#only;
    for (const state of this.#template?.byKey.values() ?? []) if (state instanceof InputState) yield state;
  }

  *refusals(): Iterable<RefusedState> {
    if (this.#only instanceof RefusedState) yield this.#only;
    if (this.#template?.beyondInputs) yield this.#template.beyondInputs;
    if (this.#template?.beyondRefused) yield this.#template.beyondRefused;
    for (const state of this.#template?.byKey.values() ?? []) if (state instanceof RefusedState) yield state;
  }

  #resolve(captures: Captures): InputState | RefusedState {
    const template = this.#template;
    if (!template) return this.#open("", captures);
    // NUL stands in no topic and no name of a node.
    const key = template.names.map((name) => (Object.hasOwn(captures, name) ? captures[name] : "")).join("\0");
    const state = template.byKey.get(key) ?? this.#open(key, captures);
    if (state !== template.beyondRefused) template.byCaptures.set(captures, state);
    return state;
  }

  #open(key: string, captures: Captures): InputState | RefusedState {
    const { input: template, maxInputs } = this.rule;
    if (this.#template && this.#template.inputs >= maxInputs) return this.#tooManyInputs(this.#template, maxInputs);
    const input = fillInput(template, captures);
    if (!isInputId(input)) return this.#refuse(key, input, whyNoInputId(input));
    const state = new InputState(this, input);
    const owner = this.#parts.claim(state);
    if (owner instanceof InputState) {
      // Other captures came to the same Input ID: the address decides which of them feed it.
      if (owner.of === this) return owner;
      owner.of.contested(owner);
    }
    if (owner) return this.#refuse(key, input, `is fed already by ${nameOf(owner)}`, owner);
    if (this.#template) {
      this.#template.inputs++;
      this.#template.byKey.set(key, state);
    }
    this.#parts.opened(state, this, captures);
    return state;
  }

  #refuse(key: string, input: string, reason: string, owner?: Feeder): RefusedState {
    const template = this.#template;
    if (template && template.refusals >= maxRefused) return this.#tooManyRefused(template, input);
    const state = new RefusedState(this.id, input, reason, owner);
    if (template) {
      template.refusals++;
      template.byKey.set(key, state);
    }
    this.#parts.refused(state);
    return state;
  }

  #tooManyInputs(template: TemplateInputs, most: number): RefusedState {
    const reason = `the tag has ${most} Input IDs already; maxInputs bounds them`;
    template.beyondInputs ??= this.#counted(this.rule.input, reason);
    return template.beyondInputs;
  }

  #tooManyRefused(template: TemplateInputs, input: string): RefusedState {
    const reason = `${maxRefused} Input IDs of this tag are refused and listed; further ones are counted here`;
    template.beyondRefused ??= this.#counted(input, reason, "do what the listed ones need");
    return template.beyondRefused;
  }

  #counted(input: string, reason: string, remedy?: string): RefusedState {
    const state = new RefusedState(this.id, input, reason, undefined, remedy);
    this.#parts.refused(state);
    return state;
  }
}

function templateInputs(names: readonly string[]): TemplateInputs {
  return {
    names,
    byKey: new Map(),
    byCaptures: new WeakMap(),
    last: undefined,
    beyondInputs: undefined,
    beyondRefused: undefined,
    inputs: 0,
    refusals: 0,
  };
}

function nameOf({ of: { id, source }, address }: Feeder): string {
  return `${source}: ${address === "" ? `tag ${id}` : address}`;
}

function whyNoInputId(input: string): string {
  if (input === "") return "nothing of what was captured may stand in an Input ID";
  return "is no Input ID: 1 to 128 letters, digits and - _ : . # + /";
}
