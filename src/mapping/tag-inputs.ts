// The inputs of one tag: one where its Input ID is fixed, else one for each combination of captures that fills it.
import { isInputId } from "../core/point.ts";
import type { Captures, TagId } from "../core/source.ts";
import type { Feeder } from "./input-owners.ts";
import { InputState } from "./input-state.ts";
import { fillInput, placeholders } from "./input-template.ts";
import type { TagRule } from "./options.ts";
import { RefusedState } from "./refused-input.ts";

/** What the inputs of all tags of a source have in common: one object, since there may be 100,000 tags. */
export interface TagInputsParts {
  readonly source: string;
  /** Who has the Input ID of `state` if it may not be used: see `InputOwners`. */
  readonly claim: (state: InputState, rule: TagRule) => Feeder | undefined;
  /** Called once for each new state. Its captures are not kept: they are the driver's, which may forget them. */
  readonly opened: (state: InputState, rule: TagRule, captures: Captures) => void;
  readonly refused: (state: RefusedState) => void;
}

/** Most refused IDs that are remembered of a tag; further ones are counted only. */
const maxRefused = 100;

/** Of a tag whose Input ID is fixed. */
const noNames: readonly string[] = [];

export class TagInputs {
  readonly #parts: TagInputsParts;
  readonly #tag: TagId;
  readonly #rule: TagRule;
  readonly #names: readonly string[];
  /** Undefined where the Input ID is fixed. */
  readonly #byKey: Map<string, InputState | RefusedState> | undefined;
  /** A driver gives the same object for the same captures, so that most readings stop here. */
  readonly #byCaptures: WeakMap<Captures, InputState | RefusedState> | undefined;
  #last: { readonly captures: Captures; readonly state: InputState | RefusedState } | undefined;
  #only: InputState | RefusedState | undefined;
  #overflow: RefusedState | undefined;
  #inputs = 0;
  #refusals = 0;

  constructor(tag: TagId, rule: TagRule, parts: TagInputsParts) {
    this.#parts = parts;
    this.#tag = tag;
    this.#rule = rule;
    const names = placeholders(rule.input);
    this.#names = names.length === 0 ? noNames : names;
    this.#byKey = names.length === 0 ? undefined : new Map();
    this.#byCaptures = names.length === 0 ? undefined : new WeakMap();
  }

  /** Claims a fixed Input ID, before any reading. */
  claimFixed(): void {
    if (this.#names.length === 0) this.#only = this.#open("", {});
  }

  find(captures: Captures): InputState | RefusedState {
    if (this.#only) return this.#only;
    if (this.#last?.captures === captures) return this.#last.state;
    const state = this.#byCaptures?.get(captures) ?? this.#resolve(captures);
    this.#last = { captures, state };
    return state;
  }

  /** Looks again at captures that were refused because another tag had the Input ID, which it has no longer. */
  findAgain(captures: Captures, refused: RefusedState): InputState | RefusedState {
    this.#last = undefined;
    this.#byCaptures?.delete(captures);
    if (this.#only === refused) this.claimFixed();
    for (const [key, state] of this.#byKey ?? []) if (state === refused) this.#byKey?.delete(key);
    return this.find(captures);
  }

  /** How many `inputs` there are. */
  get size(): number {
    return this.#inputs;
  }

  *inputs(): Generator<InputState, void, undefined> {
    if (this.#only instanceof InputState) yield this.#only;
    for (const state of this.#byKey?.values() ?? []) if (state instanceof InputState) yield state;
  }

  *refusals(): Iterable<RefusedState> {
    if (this.#only instanceof RefusedState) yield this.#only;
    if (this.#overflow) yield this.#overflow;
    for (const state of this.#byKey?.values() ?? []) if (state instanceof RefusedState) yield state;
  }

  #resolve(captures: Captures): InputState | RefusedState {
    // NUL stands in no topic and no name of a node.
    const key = this.#names.map((name) => (Object.hasOwn(captures, name) ? captures[name] : "")).join("\0");
    const state = this.#byKey?.get(key) ?? this.#open(key, captures);
    this.#byCaptures?.set(captures, state);
    return state;
  }

  #open(key: string, captures: Captures): InputState | RefusedState {
    const { input: template, maxInputs } = this.#rule;
    if (this.#inputs >= maxInputs) return this.#tooMany(template, maxInputs);
    const input = fillInput(template, captures);
    if (!isInputId(input)) return this.#refuse(key, input, whyNoInputId(input));
    const state = new InputState(this.#tag, input);
    const owner = this.#parts.claim(state, this.#rule);
    if (owner) return this.#refuse(key, input, `is fed already by ${nameOf(owner)}`, owner);
    this.#inputs++;
    this.#byKey?.set(key, state);
    this.#parts.opened(state, this.#rule, captures);
    return state;
  }

  #refuse(key: string, input: string, reason: string, owner?: Feeder): RefusedState {
    const state = new RefusedState(this.#parts.source, this.#tag, input, reason, owner);
    if (++this.#refusals > maxRefused) return this.#tooMany(input, maxRefused, "refused ");
    this.#byKey?.set(key, state);
    this.#parts.refused(state);
    return state;
  }

  #tooMany(input: string, most: number, which = ""): RefusedState {
    if (!this.#overflow) {
      this.#overflow = new RefusedState(
        this.#parts.source,
        this.#tag,
        input,
        `the tag has ${most} ${which}Input IDs already; maxInputs bounds them`,
      );
      this.#parts.refused(this.#overflow);
    }
    return this.#overflow;
  }
}

function nameOf({ source, state: { tag, address } }: Feeder): string {
  return `${source}: ${address === "" ? `tag ${tag}` : address}`;
}

function whyNoInputId(input: string): string {
  if (input === "") return "nothing of what was captured may stand in an Input ID";
  return "is no Input ID: 1 to 128 letters, digits and - _ : . # + /";
}
