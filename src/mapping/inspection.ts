// What becomes of each reading of one input, while its page is open: the raw value, the point, and the rule
// that stored it or held it back.
import type { Reading } from "../core/source.ts";
import type { InputState, ReadingObserver } from "./input-state.ts";
import type { InspectedInput, InspectedReading, TagState } from "./mapping.ts";
import type { TagRule } from "./options.ts";
import type { TagInputs } from "./tag-inputs.ts";
import { tagState, tagsIn } from "./tag-state.ts";

/** A reader that does not ask again for this long has left, in milliseconds. */
const leftAfterMs = 30_000;
const mostReadings = 20;
const longestRaw = 200;

interface Before extends Pick<TagState, "readings" | "stored" | "bad" | "filtered"> {
  readonly held: boolean;
  readonly epoch: number;
  readonly storedValue: number;
}

/** Inputs of a source that are recorded at a time. Any client may ask for any input, and each one slows its readings. */
const mostInspected = 64;

export class Inspections {
  /** In the order in which their recording began. */
  readonly #recorded = new Set<InputState>();

  /** One input of `tag` with its latest readings, which are recorded from the first call on. Undefined: unknown. */
  of(tag: TagInputs | undefined, input: string, nowMs: number): InspectedInput | undefined {
    const state = tag?.inputs().find((each) => each.input === input);
    if (!tag) return undefined;
    const rules = ruleTexts(tag.rule);
    if (!state) {
      const [unread] = tag.rule.input === input && tag.size === 0 ? tagsIn([tag], 0, 1).tags : [];
      return unread && { state: unread, rules, latest: [] };
    }
    const { observer } = state;
    const inspection = observer instanceof Inspection ? observer : this.#record(state, new Inspection(tag.rule, nowMs));
    return { state: tagState(state), rules, latest: inspection.read(nowMs) };
  }

  #record(state: InputState, inspection: Inspection): Inspection {
    this.#recorded.delete(state);
    for (const oldest of this.#recorded) {
      if (this.#recorded.size < mostInspected) break;
      oldest.observer = undefined;
      this.#recorded.delete(oldest);
    }
    this.#recorded.add(state);
    state.observer = inspection;
    return inspection;
  }
}

class Inspection implements ReadingObserver {
  #askedMs: number;
  readonly #rule: TagRule;
  readonly #readings: InspectedReading[] = [];

  constructor(rule: TagRule, nowMs: number) {
    this.#rule = rule;
    this.#askedMs = nowMs;
  }

  /** The latest readings, newest first. */
  read(nowMs: number): readonly InspectedReading[] {
    this.#askedMs = nowMs;
    return this.#readings.toReversed();
  }

  observe(state: InputState, reading: Reading, nowMs: number, map: () => void): void {
    const { readings, stored, bad, report } = state;
    const before = {
      readings,
      stored,
      bad,
      filtered: report?.filtered ?? 0,
      held: report?.held !== undefined,
      epoch: report?.epoch ?? 0,
      storedValue: report?.storedValue ?? Number.NaN,
    };
    map();
    const { value: raw, time, clock, quality, address, historical } = reading;
    // The state keeps the value of the latest reading of the device's present.
    const isLatest = !historical && state.readings > before.readings;
    const text = typeof raw === "string" ? JSON.stringify(raw) : raw === undefined ? undefined : String(raw);
    this.#readings.push({
      ...(text !== undefined && { raw: text.length <= longestRaw ? text : `${text.slice(0, longestRaw)}…` }),
      type: typeof raw,
      ...(isLatest && !Number.isNaN(state.value) && { value: state.value }),
      time,
      clock,
      quality,
      address,
      stored: isStored(state, reading, before),
      why: whyOf(state, this.#rule, reading, before),
    });
    if (this.#readings.length > mostReadings) this.#readings.shift();
    if (nowMs - this.#askedMs > leftAfterMs) state.observer = undefined;
  }
}

/** A reading may release a point that waited without being stored itself. */
function isStored({ stored, report }: InputState, { historical }: Reading, before: Before): boolean {
  const isHeldBack = !historical && report && (report.held !== undefined || report.filtered > before.filtered);
  return stored > before.stored && isHeldBack !== true;
}

function whyOf(state: InputState, { report: rule }: TagRule, reading: Reading, before: Before): string {
  const { report } = state;
  if (state.readings === before.readings) return `it is from ${reading.address}, and ${state.boundTo} feeds this input`;
  if (state.bad > before.bad) return (reading.historical ? reading.reason : state.reason) ?? "it is not usable";
  if (reading.historical) return "it is from the history of the device";
  if (!report || rule === undefined || rule === "off") return "every good reading is stored";
  const deadband = bandText(report.deadband);
  const last = before.storedValue;
  if (isStored(state, reading, before)) {
    if (before.epoch !== report.epoch) return "it is the first one after a start or a gap";
    const isChange = Math.abs(state.value - last) > report.deadband;
    return isChange ? `it differs from ${last} by more than ${deadband}` : "the heartbeat has elapsed";
  }
  if (report.held)
    return `minInterval has not elapsed; ${before.held ? "it replaces the one that waited" : "it waits"}`;
  return `it differs from ${report.storedValue} by no more than ${deadband}`;
}

function bandText(deadband: number): string {
  return Number.isNaN(deadband) ? "a percentage of an unknown range" : String(deadband);
}

/** The rules of a tag in words, in the order in which they apply. */
function ruleTexts(rule: TagRule): readonly string[] {
  const { values, scale, offset, valid, badQuality, report, align, sameTime } = rule;
  const percent = (share: { readonly percent: number }) => `${share.percent} % of the range`;
  const texts = [
    values &&
      `words: ${Object.entries(values)
        .slice(0, 20)
        .map(([word, number]) => `${word} is ${number}`)
        .join(", ")}`,
    scale !== 1 && `times ${scale}`,
    offset !== 0 && `plus ${offset}`,
    valid?.min !== undefined && `at least ${valid.min}`,
    valid?.max !== undefined && `at most ${valid.max}`,
    badQuality === "keep" && "stored also with bad quality",
    ...(report === undefined || report === "off"
      ? ["every good reading is stored"]
      : [
          `stored when it changes by more than ${typeof report.deadband === "number" ? report.deadband : percent(report.deadband)}`,
          report.heartbeat !== undefined && `at least every ${report.heartbeat / 1_000} s`,
          report.minInterval !== undefined && `at most every ${report.minInterval / 1_000} s`,
        ]),
    align !== undefined && `times rounded to ${align / 1_000} s`,
    sameTime === "keep" && "each value of one time is stored",
  ];
  return texts.filter((text) => typeof text === "string");
}
