// The inputs of one tag: one where its Input ID is fixed, else one for each combination of captures that fills it.
import { isInputId } from "../core/point.ts";
import type { Captures, TagId } from "../core/source.ts";
import { Converter } from "./convert.ts";
import { type Feeder, RefusedState } from "./input-owners.ts";
import { type InputNumbers, InputState, type InputTag, type ReportRule } from "./input-state.ts";
import { captured, fillInput, placeholders } from "./input-template.ts";
import type { TagRule } from "./options.ts";

/** What the inputs of all tags of a source have in common: one object, since there may be 100,000 tags. */
export interface TagInputsParts {
  readonly source: string;
  readonly numbers: InputNumbers;
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
const anotherInput = "change `input` or `maxInputs` of this tag";
const anotherTag = "give one of the tags another `input`, or write `shared: true` on both of them";

/** How the readings of tags are converted and reported: the same object for all tags whose rules say the same of it. */
export interface Processing {
  readonly converter: Converter;
  readonly report: ReportRule | undefined;
  /** Microseconds; 0: times stay as they are. */
  readonly alignUs: number;
}

/** The processing of a rule. Tags whose readings are processed alike share what does it: there may be 100,000 of them. */
export function processingTable(): (rule: TagRule) => Processing {
  const known = new Map<string, Processing>();
  return (rule) => {
    const { values, scale, offset, valid, align: alignMs } = rule;
    const report = rule.report === "off" ? undefined : rule.report;
    const reported = report && { heartbeat: report.heartbeat, minIntervalUs: (report.minInterval ?? 0) * 1_000 };
    const alignUs = (alignMs ?? 0) * 1_000;
    const key = JSON.stringify([values, scale, offset, valid, reported, alignUs]);
    const processing = known.get(key) ?? { converter: new Converter(rule), report: reported, alignUs };
    known.set(key, processing);
    return processing;
  };
}

/** The inputs of a tag whose Input ID has names in braces. */
class TemplateInputs {
  readonly names: readonly string[];
  readonly byKey = new Map<string, InputState | RefusedState>();
  /** A driver gives the same object for the same captures, so that most readings stop here. */
  readonly byCaptures = new WeakMap<Captures, InputState | RefusedState>();
  last: { readonly captures: Captures; readonly state: InputState | RefusedState } | undefined;
  /** Counts readings of inputs beyond `maxInputs`. */
  beyondInputs: RefusedState | undefined;
  /** Counts readings of refused inputs beyond `maxRefused`. Not remembered for captures: the ID may become free. */
  beyondRefused: RefusedState | undefined;
  inputs = 0;
  /** Refused inputs in `byKey`. */
  refusals = 0;

  constructor(names: readonly string[]) {
    this.names = names;
  }
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
    this.#template = names.length === 0 ? undefined : new TemplateInputs(names);
  }

  get source(): string {
    return this.#parts.source;
  }

  get numbers(): InputNumbers {
    return this.#parts.numbers;
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

  /** The state of a tag whose Input ID is fixed. Undefined: it has names in braces, or is not claimed yet. */
  get only(): InputState | RefusedState | undefined {
    return this.#only;
  }

  /** How many `inputs` there are. */
  get size(): number {
    return this.#template ? this.#template.inputs : this.#only instanceof InputState ? 1 : 0;
  }

  *inputs(): Generator<InputState, void, undefined> {
    for (const state of this.#all()) if (state instanceof InputState) yield state;
  }

  *refusals(): Generator<RefusedState, void, undefined> {
    for (const state of this.#all()) if (state instanceof RefusedState) yield state;
  }

  *#all(): Generator<InputState | RefusedState, void, undefined> {
    const { beyondInputs, beyondRefused, byKey } = this.#template ?? {};
    for (const state of [this.#only, beyondInputs, beyondRefused]) if (state) yield state;
    if (byKey) yield* byKey.values();
  }

  #resolve(captures: Captures): InputState | RefusedState {
    const template = this.#template;
    if (!template) return this.#open("", captures);
    // NUL stands in no topic and no name of a node.
    const key = template.names.map((name) => captured(captures, name)).join("\0");
    const state = template.byKey.get(key) ?? this.#open(key, captures);
    if (state !== template.beyondRefused) template.byCaptures.set(captures, state);
    return state;
  }

  #open(key: string, captures: Captures): InputState | RefusedState {
    const { input: text, maxInputs } = this.rule;
    const template = this.#template;
    if (template && template.inputs >= maxInputs)
      return (template.beyondInputs ??= this.#refused(
        text,
        `the tag has ${maxInputs} Input IDs already; maxInputs bounds them`,
      ));
    const input = fillInput(text, captures);
    if (!isInputId(input)) return this.#refuse(key, input, whyNoInputId(input));
    const state = new InputState(this, input);
    const owner = this.#parts.claim(state);
    if (owner instanceof InputState) {
      // Other captures came to the same Input ID: the address decides which of them feed it.
      if (owner.of === this) return owner;
      owner.of.contested(owner);
    }
    if (owner) return this.#refuse(key, input, `is fed already by ${nameOf(owner)}`, owner);
    if (template) {
      template.inputs++;
      template.byKey.set(key, state);
    }
    state.claimed();
    this.#parts.opened(state, this, captures);
    return state;
  }

  #refuse(key: string, input: string, reason: string, owner?: Feeder): RefusedState {
    const template = this.#template;
    if (template && template.refusals >= maxRefused)
      return (template.beyondRefused ??= this.#refused(
        input,
        `${maxRefused} Input IDs of this tag are refused and listed; further ones are counted here`,
        "do what the listed ones need",
      ));
    const state = this.#refused(input, reason, owner ? anotherTag : anotherInput, owner);
    if (template) {
      template.refusals++;
      template.byKey.set(key, state);
    }
    return state;
  }

  #refused(input: string, reason: string, remedy = anotherInput, owner?: Feeder): RefusedState {
    const state = new RefusedState({ tag: this.id, input, reason, remedy }, owner);
    this.#parts.refused(state);
    return state;
  }
}

function nameOf({ of: { id, source }, address }: Feeder): string {
  return `${source}: ${address === "" ? `tag ${id}` : address}`;
}

function whyNoInputId(input: string): string {
  if (input === "") return "nothing of what was captured may stand in an Input ID";
  return "is no Input ID: 1 to 128 letters, digits and - _ : . # + /";
}
