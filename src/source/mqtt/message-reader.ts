// A message becomes readings: decoded once, looked up for each tag that wants it.
import type { EpochMicros } from "../../core/point.ts";
import type { Reading } from "../../core/source.ts";
import type { Message } from "./client.ts";
import { child, everyElement, type JsonPath, lookUp } from "./json-path.ts";
import type { MessageCounts } from "./message-counts.ts";
import { PayloadError } from "./payload-error.ts";
import { payloadTime } from "./payload-time.ts";
import type { Route, TopicRouter } from "./topic-router.ts";

export interface ReaderOptions {
  /** Bytes; larger payloads are not decoded. */
  readonly maxPayload: number;
}

/** What `[*]` may find in one message. More is refused: it would be one delivery that never ends. */
export const maxElements = 10_000;

/** Turns messages into readings. */
export class MessageReader {
  readonly #router: TopicRouter;
  readonly #options: ReaderOptions;
  readonly #counts: MessageCounts;

  constructor(router: TopicRouter, options: ReaderOptions, counts: MessageCounts) {
    this.#router = router;
    this.#options = options;
    this.#counts = counts;
  }

  /** Adds the readings of `message` to `readings`. Never throws for what is in it. */
  read(message: Message, arrival: EpochMicros, readings: Reading[]): void {
    const groups = this.#router.routes(message.topic);
    if (groups.length === 0) {
      this.#counts.unmatched++;
      return;
    }
    // An empty retained message deletes one, and an empty one says nothing.
    if (message.payload.length === 0) {
      this.#counts.empty++;
      return;
    }
    let malformed = false;
    for (const { decode, routes } of groups) {
      const wanted = message.retained ? routes.filter(({ tag }) => tag.retained !== "ignore") : routes;
      if (wanted.length === 0) continue;
      try {
        this.#checkSize(message.payload);
        const document = decode(message.payload);
        for (const route of wanted) this.#readTag(route, document, message, arrival, readings);
      } catch (error) {
        if (!(error instanceof PayloadError)) throw error;
        malformed = true;
        for (const route of wanted) readings.push(bad(route, message.topic, arrival, `payload ${error.message}`));
      }
    }
    if (malformed) this.#counts.malformed++;
  }

  #checkSize(payload: Buffer): void {
    const { maxPayload } = this.#options;
    if (payload.length > maxPayload)
      throw new PayloadError(`of ${payload.length} bytes is larger than maxPayload, ${maxPayload} bytes`);
  }

  #readTag(route: Route, document: unknown, message: Message, arrival: EpochMicros, readings: Reading[]): void {
    const { value } = route.tag;
    if (value === undefined) this.#push(route, document, document, [], message, arrival, readings);
    else if (!value.many) this.#push(route, document, lookUp(document, value), [], message, arrival, readings);
    else
      for (const { found, at } of expand(document, value))
        this.#push(route, document, found, at, message, arrival, readings);
  }

  #push(
    route: Route,
    document: unknown,
    found: unknown,
    at: readonly number[],
    { topic, retained }: Message,
    arrival: EpochMicros,
    readings: Reading[],
  ): void {
    if (found === undefined) {
      this.#counts.missing++;
      return;
    }
    const { id, tag } = route;
    const timed = tag.time && payloadTime(follow(document, tag.time.at, at), tag.time.format, arrival);
    if (tag.time && timed === undefined) this.#counts.untimed++;
    if (retained && timed === undefined && tag.retained === "timestamped") {
      this.#counts.stale++;
      return;
    }
    const captures = at.length === 0 ? route.captures : elementCaptures(route, at);
    const time = timed ?? arrival;
    const clock = timed === undefined ? "agent" : "device";
    if (isValue(found))
      readings.push({
        tag: id,
        captures,
        address: topic,
        value: found,
        time,
        clock,
        quality: "good",
        historical: false,
      });
    else {
      const reason = found === null ? "value is null" : `value is ${Array.isArray(found) ? "an array" : "an object"}`;
      readings.push({ ...bad(route, topic, time, reason), captures, clock });
    }
  }
}

function isValue(found: unknown): found is number | bigint | boolean | string {
  return found !== null && typeof found !== "object";
}

function bad({ id, captures }: Route, address: string, time: EpochMicros, reason: string): Reading {
  return {
    tag: id,
    captures,
    address,
    value: undefined,
    time,
    clock: "agent",
    quality: "bad",
    reason,
    historical: false,
  };
}

/** Values at a path with `[*]`, each with the indices that led to it. */
function* expand(document: unknown, path: JsonPath): Generator<{ readonly found: unknown; readonly at: number[] }> {
  let places: { readonly found: unknown; readonly at: number[] }[] = [{ found: document, at: [] }];
  for (const step of path.steps) {
    if (step === everyElement) {
      places = places.flatMap(({ found, at }) =>
        elements(found).map((element, i) => ({ found: element, at: [...at, i] })),
      );
      if (places.length > maxElements) throw new PayloadError(`has more than ${maxElements} values at ${path.text}`);
    } else places = places.map(({ found, at }) => ({ found: child(found, step), at }));
  }
  yield* places;
}

/** Elements of an array, or the values of an object's members. */
function elements(parent: unknown): readonly unknown[] {
  if (Array.isArray(parent)) return parent;
  return typeof parent === "object" && parent !== null ? Object.values(parent) : [];
}

/** What stands at a path whose `[*]` stand for the indices `at`, one after the other. */
function follow(document: unknown, path: JsonPath, at: readonly number[]): unknown {
  if (!path.many) return lookUp(document, path);
  let found = document;
  let depth = 0;
  for (const step of path.steps)
    found = step === everyElement ? elements(found)[at[depth++] ?? -1] : child(found, step);
  return found;
}

function elementCaptures(route: Route, at: readonly number[]) {
  const i = at.join(".");
  const known = route.elements.get(i);
  if (known) return known;
  const captures = { ...route.captures, i };
  route.elements.set(i, captures);
  return captures;
}
