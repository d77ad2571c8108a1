// Converts messages to readings. Each payload is decoded once; all its tags read the document.
import { reasonOf } from "../../../core/errors.ts";
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import type { AheadTime, Reading } from "../../../core/source.ts";
import { badReading } from "../../../lib/readings/reading-batch.ts";
import type { MqttTag } from "../config/tag.ts";
import { longProperties, type Message, payloadBytes } from "../connection/packet-reader.ts";
import { expand, follow, noKeys, opened, type PathMatch, scalarText } from "../decoders/json-path.ts";
import { isScalar, PayloadError } from "../decoders/payload.ts";
import {
  arrivalTaken,
  payloadTime,
  type TimeFault,
  timeIn,
  timeInRange,
  unitMicros,
} from "../decoders/payload-time.ts";
import { badCode } from "../decoders/quality.ts";
import { readStruct } from "../decoders/struct.ts";
import { elementOf } from "../reading/element.ts";
import type { MessageCounts, UnknownTopics } from "../reading/message-counts.ts";
import type { NameTables } from "../reading/name-tables.ts";
import type { Route, TopicRouter } from "../reading/topic-router.ts";
import type { SparkplugHost } from "../sparkplug/host.ts";
import type { ReadingSink } from "../sparkplug/metric-readings.ts";
import type { SubscriptionCopies } from "../topics/topic-trie.ts";

interface ReaderParts {
  readonly router: TopicRouter;
  /** In bytes. Larger payloads are not decoded. */
  readonly maxPayload: number;
  readonly sparkplug: SparkplugHost;
  readonly names: NameTables;
  readonly copies: Pick<SubscriptionCopies, "isFor">;
  readonly counts: MessageCounts;
  readonly unknown: UnknownTopics;
  /** Called with an error that no payload should cause, which is a defect of the agent. */
  readonly onDefect: (error: unknown) => void;
}

/** Limit for the readings of one message. The tag that exceeds it is still read completely. */
const maxReadings = 100_000;

export function messageReader(parts: ReaderParts) {
  const { router, maxPayload, sparkplug, names, copies, counts, unknown, onDefect } = parts;

  /** Adds the readings of `message` to `sink`. Never throws because of its content. */
  function read(message: Message, arrival: EpochMicros, sink: ReadingSink): void {
    const { readings } = sink;
    const routes = router.routes(message.topic);
    const hasNames = names.filters.length > 0 && learnNames(message);
    if (routes.length === 0) {
      if (!hasNames) noteUnmatched(message);
      return;
    }
    // An empty retained message deletes a retained one. Other empty messages carry no data either.
    if (payloadBytes(message) === 0) {
      counts.empty++;
      return;
    }
    let isMalformed = false;
    const complain = (route: Route, error: unknown) => {
      isMalformed = true;
      const reason = malformed(message, error);
      // Without the names in the payload, the signal of the reading is unknown.
      if (isNamedByPayload(route)) return;
      readings.push(
        badReading({ tag: route.id, captures: route.captures, address: route.from, time: arrival }, reason),
      );
    };
    const most = readings.length + maxReadings;
    for (let from = 0, to = 0; from < routes.length; from = to) {
      to = endOfGroup(routes, from);
      const group = ofCopy(to - from === routes.length ? routes : routes.slice(from, to), message);
      const wanted = message.retained ? group.filter(({ tag }) => tag.retained !== "ignore") : group;
      const way = wanted[0]?.way;
      if (!way) continue;
      try {
        checkSize(message);
        const document = way.decode(message.payload, arrival);
        if (way.address.decoder === "sparkplugB") {
          if (!sparkplug.read(wanted, message, arrival, sink)) noteUnmatched(message);
          continue;
        }
        const context = { message, document, arrival, counts, names, readings, complain };
        for (const route of wanted) {
          try {
            if (readings.length >= most)
              throw new PayloadError(`has more than ${maxReadings} values for all tags together`);
            readTag(route, context);
          } catch (error) {
            complain(route, error);
          }
        }
      } catch (error) {
        for (const route of wanted) complain(route, error);
      }
    }
    if (isMalformed) counts.malformed++;
  }

  /** The routes of `group` that read this copy. All Sparkplug tags read the same one, since its host counts messages. */
  function ofCopy(group: readonly Route[], { subscriptions }: Message): readonly Route[] {
    const [first] = group;
    if (subscriptions === undefined || !first) return group;
    if (first.way.address.decoder === "sparkplugB") return copies.isFor(first.id, subscriptions) ? group : [];
    return group.filter(({ id }) => copies.isFor(id, subscriptions));
  }

  /** Whether the message carries names. */
  function learnNames(message: Message): boolean {
    try {
      return names.learn(message, maxPayload);
    } catch (error) {
      counts.malformed++;
      malformed(message, error);
      return true;
    }
  }

  /** The reason of the readings. Confines a failure: thrown, it would end the process after each redelivery. */
  function malformed({ topic }: Message, error: unknown): string {
    const isExpected = error instanceof PayloadError;
    if (!isExpected) onDefect(error);
    const reason = `payload ${isExpected ? error.message : `cannot be read: ${reasonOf(error)}`}`;
    counts.lastMalformed = `${topic}: ${reason}`;
    return reason;
  }

  function noteUnmatched(message: Message): void {
    counts.unmatched++;
    unknown.note(message);
  }

  function checkSize(message: Message): void {
    const bytes = payloadBytes(message);
    if (bytes > maxPayload) throw new PayloadError(`of ${bytes} bytes is larger than maxPayload, ${maxPayload} bytes`);
    if (message.skippedBytes !== undefined) throw new PayloadError(`was not read: ${longProperties}`);
  }

  return read;
}

/** End of the group of routes that share the decoder of the one at `from`. */
function endOfGroup(routes: readonly Route[], from: number): number {
  const decode = routes[from]?.way.decode;
  let to = from + 1;
  while (to < routes.length && routes[to]?.way.decode === decode) to++;
  return to;
}

function isNamedByPayload({ way: { address } }: Route): boolean {
  return address.depth > 0 || address.captureNames.length > 0 || address.decoder === "sparkplugB";
}

interface ReadContext extends Pick<ReaderParts, "counts" | "names"> {
  readonly message: Message;
  readonly document: unknown;
  readonly arrival: EpochMicros;
  readonly readings: Reading[];
  /** Reports that an element with a value of `route` is malformed. */
  readonly complain: (route: Route, error: PayloadError) => void;
}

/** Adds the readings of `route`'s tag. Throws `PayloadError` if the message does not contain what the tag expects. */
function readTag(route: Route, context: ReadContext): void {
  const { tag, way } = route;
  const { document } = context;
  const { value, time } = way.address;
  if (!value?.many) {
    const found = value === undefined ? document : follow(document, value);
    readValue(route, { value: found, keys: noKeys, positions: 0 }, timeOf(route, noKeys, context), context);
    return;
  }
  const inside = { ...context, document: opened(document, value) };
  const all = expand(inside.document, value, tag.exclude, () => void context.counts.texts++);
  if (all.length === 0) context.counts.noteLacking(route.id, context.message.topic, value.text);
  if (tag.each === "sample" && time?.step !== undefined) readBlock(route, time, all, inside);
  else for (const found of all) readValue(route, found, timeOf(route, found.keys, inside), inside);
}

type TimeField = NonNullable<MqttTag["time"]>;
type Time = EpochMicros | TimeFault | undefined;

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

function stepMicros({ step }: TimeField, document: unknown): number | undefined {
  if (step === undefined || typeof step === "number") return step && step * 1_000;
  const found = Number(follow(document, step.at));
  return found > 0 && Number.isFinite(found) ? found * unitMicros[step.unit] : undefined;
}

/** The time in the message, or its fault. Undefined: the tag uses the time of arrival. */
function timeOf({ way, captures }: Route, keys: readonly string[], context: ReadContext): Time {
  const { time } = way.address;
  if (time === undefined) return undefined;
  const { capture, property, format, zone } = time;
  const { message, document, arrival } = context;
  if (capture === undefined && property === undefined) return timeIn(document, time, keys, arrival);
  const text = capture === undefined ? message.properties?.[property ?? ""] : captures[capture];
  return payloadTime(text, format, zone, arrival, time);
}

/** `time`: the message's own time or its fault. `assumed`: the time if there is none. */
function readValue(
  route: Route,
  element: PathMatch,
  time: Time,
  context: ReadContext,
  assumed: EpochMicros = context.arrival,
): void {
  const { value, keys } = element;
  const { id, tag } = route;
  const { message, document, counts, readings } = context;
  const malformed = value instanceof PayloadError ? value : typeof time === "object" && time.malformed;
  if (malformed) {
    context.complain(route, malformed);
    return;
  }
  const absent = value === undefined;
  const code = tag.quality && badCode(tag.quality, document, keys);
  const isBad = code !== undefined;
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
  const present = tag.bytes && !absent ? readStruct(value, tag.bytes) : value;
  const found = absent && tag.missing !== "skip" ? tag.missing : present;
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

function describe(found: unknown): string {
  if (found === null) return "null";
  return scalarText(found) ?? (Array.isArray(found) ? "an array" : "an object");
}
