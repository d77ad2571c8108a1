// What is known of one edge node: its metrics by name and alias, its sequence of messages, whether it is there.
import type { Captures } from "../../../core/source.ts";

/** A metric as its birth declared it. */
export interface KnownMetric {
  readonly name: string;
  readonly datatype: number;
  /** Empty for the node itself. */
  readonly device: string;
  /** The same object for as long as the metric is known. */
  readonly captures: Captures;
}

/** Metrics of one edge node and its devices at most; a defective node must not fill the memory. */
const maxMetrics = 100_000;

export class EdgeNode {
  readonly group: string;
  readonly node: string;
  /** Number of the current birth; undefined: no birth was seen. */
  bdSeq: number | undefined;
  born = false;
  #byAlias = new Map<number | bigint, KnownMetric>();
  readonly #byName = new Map<string, KnownMetric>();
  #expected: number | undefined;
  /** Messages that came before the birth they follow. */
  readonly #early = new Set<number>();
  /** Messages that were skipped, with the monotonic time when that was noticed. */
  readonly #missing = new Map<number, number>();

  constructor(group: string, node: string) {
    this.group = group;
    this.node = node;
  }

  /** A birth of the node: its aliases and its sequence begin anew. A device may have been born before by the same count. */
  begin(bdSeq: number | undefined, seq: number | undefined): void {
    const overtaken = this.born ? [] : [...this.#byAlias];
    this.#byAlias = new Map(overtaken);
    this.bdSeq = bdSeq;
    this.born = true;
    this.#missing.clear();
    this.#expected = seq === undefined ? undefined : (seq + 1) % 256;
    while (this.#expected !== undefined && this.#early.delete(this.#expected))
      this.#expected = (this.#expected + 1) % 256;
    this.#early.clear();
  }

  /** The node is gone: what it sends next without a birth is not understood. */
  end(): void {
    this.born = false;
    this.#byAlias.clear();
    this.#missing.clear();
    this.#expected = undefined;
  }

  declare(device: string, name: string, alias: number | bigint | undefined, datatype: number): KnownMetric {
    const key = `${device}\0${name}`;
    const known = this.#byName.get(key);
    const metric =
      known?.datatype === datatype
        ? known
        : {
            name,
            datatype,
            device,
            captures: known?.captures ?? { group: this.group, node: this.node, device, metric: name },
          };
    if (known || this.#byName.size < maxMetrics) this.#byName.set(key, metric);
    if (alias !== undefined && this.#byAlias.size < maxMetrics) this.#byAlias.set(alias, metric);
    return metric;
  }

  /** A name goes before an alias. */
  find(device: string, name: string | undefined, alias: number | bigint | undefined): KnownMetric | undefined {
    if (name !== undefined && name !== "") return this.#byName.get(`${device}\0${name}`);
    return alias === undefined ? undefined : this.#byAlias.get(alias);
  }

  /** Metrics of the device, or of the node and all its devices. */
  metrics(device: string): readonly KnownMetric[] {
    return [...this.#byName.values()].filter((metric) => device === "" || metric.device === device);
  }

  /** Takes note of a message's number. Messages may overtake each other, so that a gap counts only when it has lasted. */
  follow(seq: number, nowMs: number): void {
    if (this.#expected === undefined) this.#early.add(seq % 256);
    if (this.#missing.delete(seq) || this.#expected === undefined) return;
    for (let skipped = this.#expected, n = 0; skipped !== seq && n < 256; skipped = (skipped + 1) % 256, n++)
      this.#missing.set(skipped, nowMs);
    this.#expected = (seq + 1) % 256;
  }

  /** Whether a message has been missing for `windowMs`; forgets those it tells of. */
  lostSince(nowMs: number, windowMs: number): boolean {
    let lost = false;
    for (const [seq, since] of this.#missing) {
      if (nowMs - since < windowMs) continue;
      this.#missing.delete(seq);
      lost = true;
    }
    return lost;
  }
}
