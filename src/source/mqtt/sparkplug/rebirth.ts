// Asks an edge node to introduce itself again: the one message that is ever published.
import type { EpochMicros } from "../../../core/point.ts";

/** Milliseconds between two requests to the same node. */
const perNodeMs = 60_000;
/** Nodes whose last request is remembered. */
const maxNodes = 10_000;
/** Milliseconds between two requests to any, so that a large plant does not answer all at once. */
const perBrokerMs = 100;

export interface RebirthOptions {
  /** Undefined: nobody is asked, births are waited for. */
  readonly publish: ((topic: string, payload: Buffer) => void) | undefined;
}

export class RebirthRequests {
  readonly #publish: RebirthOptions["publish"];
  readonly #lastByNode = new Map<string, number>();
  #last = Number.NEGATIVE_INFINITY;

  constructor({ publish }: RebirthOptions) {
    this.#publish = publish;
  }

  /** Asks, unless this node or another one was asked a moment ago. True: asked. */
  ask(group: string, node: string, monotonicMs: number, now: EpochMicros): boolean {
    const key = `${group}/${node}`;
    const last = this.#lastByNode.get(key) ?? Number.NEGATIVE_INFINITY;
    if (!this.#publish || monotonicMs - last < perNodeMs || monotonicMs - this.#last < perBrokerMs) return false;
    this.#last = monotonicMs;
    this.#lastByNode.delete(key);
    const [oldest] = this.#lastByNode.keys();
    if (this.#lastByNode.size >= maxNodes && oldest !== undefined) this.#lastByNode.delete(oldest);
    this.#lastByNode.set(key, monotonicMs);
    this.#publish(`spBv1.0/${group}/NCMD/${node}`, rebirthPayload(now));
    return true;
  }
}

/** Payload with the time and one metric, `Node Control/Rebirth`, a boolean (11) that is true. */
export function rebirthPayload(now: EpochMicros): Buffer {
  const timestamp = varint(Math.floor(now / 1_000));
  const name = Buffer.from("Node Control/Rebirth");
  const metric = Buffer.concat([
    Buffer.from([0x0a, name.length]),
    name,
    Buffer.from([0x18]),
    timestamp,
    Buffer.from([0x20, 11, 0x70, 1]),
  ]);
  return Buffer.concat([Buffer.from([0x08]), timestamp, Buffer.from([0x12, metric.length]), metric]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left % 0x80) | 0x80);
  return Buffer.from([...bytes, left]);
}
