// Kills and restarts an agent repeatedly with a service that answers in every possible way. Returns what both observed.
import { expect } from "vitest";
import { Block, type BlockId } from "../../src/core/block.ts";
import type { InputId } from "../../src/core/point.ts";
import type { Frame, Outcome } from "../../src/core/sink.ts";
import { ManualClock, seeded } from "./runtime.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { bornUploader, DurableBlocks } from "./upload-world.ts";

const maxRequest = 65_536;
/** The size limit of a proxy that takes effect after a while. */
const proxyTakes = 50_000;
const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;
/** A value that the service refuses. */
const bad = -1;

export interface CrashResult {
  readonly requests: number;
  /** The shortest interval between two requests in simulated milliseconds. */
  readonly closestMs: number;
  readonly largestBytes: number;
  /** Points that the service lacks, or that were never appended. */
  readonly missing: number;
  readonly strange: number;
  /** Points that were settled as refused, minus those that the service refuses. */
  readonly wronglyRefused: number;
  /** The kinds of answers of the service. */
  readonly answers: readonly string[];
}

interface Data {
  readonly times: readonly string[];
  readonly series: Readonly<Record<string, readonly (number | null)[]>>;
}

/** Stores before or while it answers. It may not answer, and may not store everything. */
class MoodyService {
  readonly starts: number[] = [];
  readonly sizes: number[] = [];
  readonly stored = new Set<string>();
  readonly answers = new Set<string>();
  proxied = false;
  readonly #clock: ManualClock;
  readonly #random: () => number;

  constructor(clock: ManualClock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  async send({ body }: Frame): Promise<Outcome> {
    this.starts.push(this.#clock.monotonic());
    this.sizes.push(body.length);
    const text = Buffer.from(body).toString("utf8");
    const late = this.#random() < 0.5;
    const waitMs = this.#random() * 900;
    const decided = this.#decide(text);
    if (!late) decided.store();
    await this.#clock.sleep(waitMs, new AbortController().signal);
    if (late) decided.store();
    this.answers.add(decided.outcome.kind);
    return decided.outcome;
  }

  #decide(text: string): { readonly outcome: Outcome; readonly store: () => void } {
    const { series } = dataOf(text);
    const chance = this.#random();
    const nothing = () => {};
    const all = () => this.#store(text, () => true);
    if (this.proxied && text.length > proxyTakes) return { outcome: { kind: "tooLarge" }, store: nothing };
    if (chance < 0.1) return { outcome: { kind: "throttled", retryAfterMs: 1_000 }, store: nothing };
    if (chance < 0.2) return { outcome: { kind: "unavailable", cause: new Error("down") }, store: nothing };
    if (chance < 0.25) return { outcome: { kind: "unauthorized", reason: "who are you?" }, store: nothing };
    if (Object.values(series).some((values) => values.includes(bad)))
      return { outcome: { kind: "refused", code: -32602, reason: "no such value", inputs: [] }, store: nothing };
    if (chance < 0.32) return { outcome: { kind: "unavailable", cause: new Error("the answer is lost") }, store: all };
    if (chance < 0.4) {
      const inputs = new Set(Object.keys(series).filter((_, k) => k % 2 === 0));
      return {
        // inputs of the agent's own request
        outcome: { kind: "partial", accepted: [...inputs] as InputId[], refused: [] },
        store: () => this.#store(text, (input) => inputs.has(input)),
      };
    }
    return { outcome: { kind: "accepted", signals: new Map() }, store: all };
  }

  #store(text: string, takes: (input: string) => boolean): void {
    const { times, series } = dataOf(text);
    for (const [input, values] of Object.entries(series))
      if (takes(input))
        for (const [i, value] of values.entries()) if (value !== null) this.stored.add(`${input} ${times[i]} ${value}`);
  }
}

function dataOf(text: string): Data {
  return (JSON.parse(text) as { params: { data: Data } }).params.data; // the uploader wrote it
}

/** Kills an uploader `restarts` times at random moments of simulated time, then lets the last one finish. */
export async function crashAndRestart(restarts: number): Promise<CrashResult> {
  using folder = temporaryFolder();
  const world = new ManualClock();
  const random = seeded(5);
  const service = new MoodyService(world, random);
  const blocks = new DurableBlocks();
  const expected = new Set<string>();
  let expectedRefused = 0;
  const limits = { limits: { maxRequest: "64KiB" } };
  for (let crash = 0; crash < restarts; crash++) {
    service.proxied = crash > restarts / 2;
    for (let part = 0; part < 10; part++) {
      const times = Float64Array.from({ length: 10 }, (_, i) => start + (crash * 100 + part * 10 + i) * 1e6);
      const series = Array.from({ length: 60 }, (_, k) => ({
        input: `tag${k}` as InputId,
        times,
        values: times.map((_, i) => (crash % 10 === 3 && k === 7 && part * 10 + i === 50 ? bad : crash + k * i)),
      }));
      for (const { input, values } of series)
        for (const [i, value] of values.entries()) {
          if (value === bad) expectedRefused++;
          else expected.add(`${input} ${new Date(times[i]! / 1e3).toISOString().replace(".000Z", "Z")} ${value}`);
        }
      blocks.append(Block.of((crash * 10 + part + 1) as BlockId, series));
    }
    const agent = await bornUploader(world, folder.path, blocks, service, limits);
    await world.advance(random() * 4_000);
    await agent.kill();
  }
  const last = await bornUploader(world, folder.path, blocks, service, limits);
  // Without a time limit: simulated time does not wait for the real disk to which refused points are written.
  while (blocks.unsettled > 0 && !last.failure()) await world.advance(5_000);
  if (last.failure()) throw last.failure();
  await last.kill();
  const { starts, sizes, stored, answers } = service;
  return {
    requests: starts.length,
    closestMs: Math.min(...starts.slice(1).map((at, i) => at - starts[i]!)),
    largestBytes: Math.max(...sizes),
    missing: missingFrom(stored, expected),
    strange: missingFrom(expected, stored),
    wronglyRefused: blocks.refused - expectedRefused,
    answers: [...answers].toSorted(),
  };
}

/** Throws if a point was lost, or a request came too soon or was too large. */
export function expectCrashProof(result: CrashResult): void {
  expect(result).toMatchObject({
    missing: 0,
    strange: 0,
    wronglyRefused: 0,
    answers: ["accepted", "partial", "refused", "throttled", "tooLarge", "unauthorized", "unavailable"],
  });
  expect(result.closestMs).toBeGreaterThanOrEqual(1_000);
  expect(result.largestBytes).toBeLessThanOrEqual(maxRequest);
  // Otherwise the size limit was not tested.
  expect(result.largestBytes).toBeGreaterThan(maxRequest * 0.95);
}

/** The number of `wanted` that are not in `found`. */
function missingFrom(found: ReadonlySet<string>, wanted: ReadonlySet<string>): number {
  let missing = 0;
  for (const each of wanted) if (!found.has(each)) missing++;
  return missing;
}
