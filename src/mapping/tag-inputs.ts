// The inputs of one tag: one for a fixed Input ID, otherwise one for each combination of captures.
import { isInputId } from "../core/point.ts";
import type { Captures, TagId } from "../core/source.ts";
import { Converter } from "./convert.ts";
import { type Feeder, RefusedState } from "./input-owners.ts";
import { type InputParts, InputState, type InputTag, type ReportRule } from "./input-state.ts";
import { captured, fillInput, placeholders } from "./input-template.ts";
import type { TagRule } from "./options.ts";

/** State that all tags of a source share in one object, since there may be 100,000 tags. */
export interface TagInputsParts extends InputParts {
  /** Undefined, or the owner of the Input ID: see `InputOwners.claim`. */
  readonly claim: (state: InputState) => Feeder | undefined;
  /** Called once for each new input. Must not retain `captures`, which the driver may discard. */
  readonly opened: (state: InputState, tag: TagInputs, captures: Captures) => void;
  readonly refused: (state: RefusedState) => void;
}

/** Refused IDs that a tag remembers. Further ones are counted, and tried again with each reading. */
const maxRefused = 100;
const anotherInput = "change `input` or `maxInputs` of this tag";
const anotherTag = "give one of the tags another `input`, or write `shared: true` on both of them";

/** Conversion and reporting rules. Tags with equal rules share the object. */
export interface Processing {
  readonly converter: Converter;
  readonly report: ReportRule | undefined;
  /** Microseconds; 0: no alignment. */
  readonly alignUs: number;
}

/** Returns the processing of a rule, shared by tags with equal rules, since there may be 100,000 tags. */
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

/** The inputs of a tag whose Input ID has placeholders. */
class TemplateInputs {
  readonly names: readonly string[];
  readonly byKey = new Map<string, InputState | RefusedState>();
  /** Fast path: a driver reuses the object for equal captures. */
  readonly byCaptures = new WeakMap<Captures, InputState | RefusedState>();
  last: { readonly captures: Captures; readonly state: InputState | RefusedState } | undefined;
  beyondInputs: RefusedState | undefined;
  /** Counts readings of refused inputs beyond `maxRefused`. Not cached for captures: the ID may become free. */
  beyondRefused: RefusedState | undefined;
  inputs = 0;
  refusals = 0;

  constructor(names: readonly string[]) {
    this.names = names;
  }
}

/** A prepared tag. Kept small, since there may be 100,000 of them. */
export class TagInputs implements InputTag {
  readonly id: TagId;
  readonly rule: TagRule;
  readonly processing: Processing;
  readonly parts: TagInputsParts;
  /** Undefined: the Input ID is fixed, and claimed before the first reading. */
  readonly #template: TemplateInputs | undefined;
  #only: InputState | RefusedState | undefined;

  constructor(id: TagId, rule: TagRule, processing: Processing, parts: TagInputsParts) {
    this.id = id;
    this.rule = rule;
    this.processing = processing;
    this.parts = parts;
    const names = placeholders(rule.input);
    if (names.length > 0) this.#template = new TemplateInputs(names);
    else this.#only = this.#open("", {});
  }

  find(captures: Captures): InputState | RefusedState {
    const template = this.#template;
    if (!template) return (this.#only ??= this.#open("", {}));
    if (template.last?.captures === captures) return template.last.state;
    const state = template.byCaptures.get(captures) ?? this.#resolve(template, captures);
    if (state !== template.beyondRefused) template.last = { captures, state };
    return state;
  }

  /** Resolves captures again after the tag that owned their Input ID has released it. */
  findAgain(captures: Captures, refused: RefusedState): InputState | RefusedState {
    const template = this.#template;
    if (this.#only === refused) this.#only = undefined;
    if (template) {
      template.last = undefined;
      template.byCaptures.delete(captures);
      for (const [key, state] of template.byKey)
        if (state === refused && template.byKey.delete(key)) template.refusals--;
      template.beyondRefused = undefined;
    }
    return this.find(captures);
  }

  /** The state of a tag with a fixed Input ID. Undefined: it has placeholders. */
  get only(): InputState | RefusedState | undefined {
    return this.#only;
  }

  get size(): number {
    return this.#template ? this.#template.inputs : this.#only instanceof InputState ? 1 : 0;
  }

  inputs(): IteratorObject<InputState> {
    return this.#all().filter((state) => state instanceof InputState);
  }

  refusals(): IteratorObject<RefusedState> {
    return this.#all().filter((state) => state instanceof RefusedState);
  }

  *#all(): Generator<InputState | RefusedState, void, undefined> {
    const { beyondInputs, beyondRefused, byKey } = this.#template ?? {};
    for (const state of [this.#only, beyondInputs, beyondRefused]) if (state) yield state;
    if (byKey) yield* byKey.values();
  }

  #resolve(template: TemplateInputs, captures: Captures): InputState | RefusedState {
    // Neither topics nor node names contain NUL.
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
    const owner = this.parts.claim(state);
    if (owner instanceof InputState) {
      // Other captures lead to the same Input ID. The address decides which of them feeds it.
      if (owner.of === this) return owner;
      owner.of.parts.contested(owner);
    }
    if (owner) return this.#refuse(key, input, `is fed already by ${nameOf(owner)}`, owner);
    if (template) {
      template.inputs++;
      template.byKey.set(key, state);
    }
    state.claimed();
    this.parts.opened(state, this, captures);
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
    this.parts.refused(state);
    return state;
  }
}

function nameOf({ of: { id, parts }, address }: Feeder): string {
  return `${parts.source}: ${address === "" ? `tag ${id}` : address}`;
}

function whyNoInputId(input: string): string {
  if (input === "") return "nothing of what was captured may stand in an Input ID";
  return "is no Input ID: 1 to 128 letters, digits and - _ : . # + /";
}
