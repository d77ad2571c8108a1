// Reads the values of one tag from a decoded message.
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import type { AheadTime, Reading } from "../../../core/source.ts";
import type { TimeRule } from "../../../lib/readings/device-time.ts";
import type { MqttTag } from "../config/tag.ts";
import type { Message } from "../connection/packet-reader.ts";
import { expand, follow, type JsonPath, lookUp, opened, type PathMatch, scalarText } from "../decoders/json-path.ts";
import { isScalar, PayloadError } from "../decoders/payload.ts";
import {
  arrivalTaken,
  noTime,
  payloadTime,
  type TimeFault,
  timeInRange,
  writtenTime,
} from "../decoders/payload-time.ts";
import { isGood } from "../decoders/quality.ts";
import { readStruct } from "../decoders/struct.ts";
import { elementOf } from "./element.ts";
import type { MessageCounts } from "./message-counts.ts";
import type { NameTables } from "./name-tables.ts";
import type { Route } from "./topic-router.ts";

interface ReadContext {
  readonly message: Message;
  readonly document: unknown;
  readonly arrival: EpochMicros;
  readonly counts: MessageCounts;
  readonly names: NameTables;
  readonly readings: Reading[];
  /** Reports that an element with a value of `route` is malformed. */
  readonly complain: (route: Route, error: PayloadError) => void;
}

/** Adds the readings of `route`'s tag. Throws `PayloadError` if the message does not contain what the tag expects. */
export function readTag(route: Route, context: ReadContext): void {
  const { tag, way } = route;
  const { document } = context;
  const { value, time } = way.address;
  if (!value?.many) {
    const found = value === undefined ? document : lookUp(document, value);
    readValue(route, { value: found, keys: noKeys, positions: 0 }, timeOf(route, noKeys, context), context);
    return;
  }
  const inside = { ...context, document: opened(document, value) };
  const all = expand(inside.document, value, tag.exclude, () => void context.counts.texts++);
  if (all.length === 0) context.counts.noteLacking(route.id, context.message.topic, value.text);
  if (tag.each === "sample" && time?.step !== undefined) readBlock(route, time, all, inside);
  else for (const found of all) readValue(route, found, timeOf(route, found.keys, inside), inside);
}

const noKeys: readonly string[] = [];
type TimeField = NonNullable<MqttTag["time"]>;

/** Reads equidistant samples, of which the message states the time of one. */
function readBlock(route: Route, rule: TimeField, samples: readonly PathMatch[], context: ReadContext): void {
  // The times of all samples follow from their number.
  for (const { value } of samples) if (value instanceof PayloadError && value.displaces) throw value;
  const step = stepMicros(rule, context.document);
  if (step === undefined) throw new PayloadError("has no time between its samples");
  const known = timeOf(route, noKeys, context);
  const timed = typeof known === "number";
  const first = rule.anchor === "last" ? samples.length - 1 : 0;
  // Without a stated time, the last sample gets the time of arrival.
  const anchor = timed ? first : samples.length - 1;
  const start = timed ? known : context.arrival;
  const ahead = timed ? undefined : known?.ahead;
  // Multiplication avoids accumulated rounding errors.
  for (const [i, sample] of samples.entries()) {
    const time = timeInRange(epochMicros(start + Math.round((i - anchor) * step)), context.arrival, rule);
    // An implausible step leads to implausible times.
    if (timed || typeof time !== "number") readValue(route, sample, time, context);
    else readValue(route, sample, ahead ? moved(known, ahead, (i - first) * step) : known, context, time);
  }
}

function moved<Fault>(fault: Fault, ahead: AheadTime, byUs: number): Fault {
  return { ...fault, ahead: { ...ahead, time: epochMicros(ahead.time + Math.round(byUs)) } };
}

const unitMicros = { s: 1e6, ms: 1e3, us: 1, ns: 1e-3 } as const;

function stepMicros({ step }: TimeField, document: unknown): number | undefined {
  if (step === undefined || typeof step === "number") return step && step * 1_000;
  const found = Number(lookUp(document, step.at));
  return found > 0 && Number.isFinite(found) ? found * unitMicros[step.unit] : undefined;
}

/** The time in the message, or its fault. Undefined: the tag uses the time of arrival. */
function timeOf(
  { way, captures }: Route,
  keys: readonly string[],
  context: ReadContext,
): EpochMicros | TimeFault | undefined {
  const { time } = way.address;
  if (time === undefined) return undefined;
  const { at, capture, property, format, zone } = time;
  const { message, arrival } = context;
  if (capture !== undefined) return payloadTime(captures[capture], format, zone, arrival, time);
  if (property !== undefined) return payloadTime(message.properties?.[property], format, zone, arrival, time);
  if (at === undefined) return undefined;
  if (!Array.isArray(at)) return timeAt(at, time, keys, context);
  let fault = noTime;
  for (const place of at) {
    const found = timeAt(place, time, keys, context);
    if (typeof found === "number") return found;
    if (fault.kind === "missing") fault = found;
  }
  return fault;
}

function timeAt(
  place: JsonPath,
  time: TimeField,
  keys: readonly string[],
  { document, arrival }: ReadContext,
): EpochMicros | TimeFault {
  const { date, fraction, format, zone } = time;
  const found = follow(document, place, keys);
  if (found instanceof PayloadError) return { kind: "unreadable", text: `the ${found.message}`, malformed: found };
  const text = date ? joined(follow(document, date, keys), found) : found;
  if (fraction === undefined) return payloadTime(text, format, zone, arrival, time);
  const whole = writtenTime(text, format, zone, arrival);
  if (typeof whole !== "number") return whole;
  return withFraction(whole, follow(document, fraction.at, keys), unitMicros[fraction.unit], arrival, time);
}

/** A missing fraction is zero, since some devices omit zeros. */
function withFraction(
  whole: number,
  found: unknown,
  unit: number,
  arrival: EpochMicros,
  rule: TimeRule,
): EpochMicros | TimeFault {
  const micros = Math.floor(Number(found ?? 0) * unit);
  if (micros >= 0 && micros < 1e6) return timeInRange(whole + micros, arrival, rule);
  const text = scalarText(found)?.slice(0, 40) ?? "an object";
  return { kind: "unreadable", text: `the fraction of the second in the payload, ${text}, is none` };
}

/** Joins date and time of day. A numeric time such as 90000 has lost its leading zero. */
function joined(date: unknown, time: unknown): string | undefined {
  const [day, hour] = [scalarText(date), scalarText(time)];
  if (day === undefined || hour === undefined) return undefined;
  return `${day} ${typeof time === "number" ? hour.padStart(6, "0") : hour}`;
}

/** `time`: the message's own time or its fault. `assumed`: the time if there is none. */
function readValue(
  route: Route,
  element: PathMatch,
  time: EpochMicros | TimeFault | undefined,
  context: ReadContext,
  assumed: EpochMicros = context.arrival,
): void {
  const { value, keys } = element;
  const { id, tag } = route;
  const { message, document, counts, readings } = context;
  if (value instanceof PayloadError) {
    context.complain(route, value);
    return;
  }
  if (typeof time === "object" && time.malformed) {
    context.complain(route, time.malformed);
    return;
  }
  const absent = value === undefined;
  const code = tag.quality && qualityCode(tag.quality.at, document, keys);
  const isBad = code !== undefined && tag.quality !== undefined && !isGood(code, tag.quality.good);
  // A device may omit a bad value.
  if (absent && tag.missing === "skip" && !isBad) {
    counts.missing++;
    counts.noteLacking(id, message.topic, tag.value?.text ?? "");
    return;
  }
  counts.noteValue(id);
  const timed = typeof time === "number";
  const fault = timed ? undefined : time;
  if (fault) counts.noteTimeFault(fault, message.topic);
  const retained = !timed && message.retained && tag.retained === "timestamped";
  // Whether the agent's own clock is wrong is unknown here.
  const ahead = fault?.ahead && retained ? ({ ...fault.ahead, otherwise: "drop" } as const) : fault?.ahead;
  if (retained && !ahead) {
    counts.stale++;
    return;
  }
  if (fault && !ahead && route.way.address.time?.unusable === "drop") return;
  const found = absent
    ? tag.missing === "skip"
      ? undefined
      : tag.missing
    : tag.bytes
      ? readStruct(value, tag.bytes)
      : value;
  const { depth, captureNames } = route.way.address;
  const place = depth === 0 && captureNames.length === 0 ? route : elementOf(route, element, context);
  if (place === undefined) {
    counts.noteUnnamed(message.topic, tag.value?.text ?? "");
    return;
  }
  const usable = isScalar(found);
  const reading: Reading = {
    tag: id,
    captures: place.captures,
    address: place.from,
    value: usable ? found : undefined,
    time: timed ? time : assumed,
    clock: timed ? "device" : "agent",
    ...(ahead && { ahead }),
    device: route.device,
    quality: usable && !isBad ? "good" : "bad",
    historical: false,
  };
  if (isBad) readings.push({ ...reading, reason: `quality is ${describe(code)}` });
  else if (!usable) readings.push({ ...reading, reason: `value is ${describe(found)}` });
  else readings.push(fault ? { ...reading, reason: arrivalTaken(fault) } : reading);
}

function qualityCode(at: JsonPath | readonly JsonPath[], document: unknown, keys: readonly string[]): unknown {
  if (!("length" in at)) return follow(document, at, keys);
  for (const place of at) {
    const code = follow(document, place, keys);
    if (code instanceof PayloadError) return code;
    if (code !== undefined && typeof code !== "object") return code;
  }
  return undefined;
}

function describe(found: unknown): string {
  if (found === null) return "null";
  return scalarText(found) ?? (Array.isArray(found) ? "an array" : "an object");
}
