// An agent that dies again and again: the service never sees requests too close or too large, and in the end has all.
import { expect, test } from "vitest";
import type { BlockId } from "../../src/core/buffer.ts";
import type { InputId } from "../../src/core/point.ts";
import type { Frame, Outcome } from "../../src/core/sink.ts";
import { ManualClock, seeded } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { bornUploader, DurableBlocks } from "../support/upload-world.ts";

// On demand 200: TAGFERRY_RESTARTS=200.
const restarts = Number(process.env.TAGFERRY_RESTARTS ?? 60);
const maxRequest = 65_536;
const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;

/** Notes when requests start and how large they are; stores them before it answers or while it does, if it answers. */
class StrictService {
  readonly starts: number[] = [];
  readonly stored = new Set<string>();
  largest = 0;
  readonly #clock: ManualClock;
  readonly #random: () => number;

  constructor(clock: ManualClock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  async send({ body }: Frame): Promise<Outcome> {
    this.starts.push(this.#clock.monotonic());
    this.largest = Math.max(this.largest, body.length);
    const text = Buffer.from(body).toString("utf8");
    const chance = this.#random();
    const late = this.#random() < 0.5;
    if (!late && chance < 0.85) this.#store(text);
    await this.#clock.sleep(this.#random() * 900, new AbortController().signal);
    if (late && chance < 0.85) this.#store(text);
    if (chance < 0.75) return { kind: "accepted", signals: new Map() };
    if (chance < 0.8) return { kind: "unavailable", cause: new Error("the answer is lost") };
    if (chance < 0.9) return { kind: "throttled", retryAfterMs: 1_000 };
    return { kind: "unavailable", cause: new Error("down") };
  }

  #store(text: string): void {
    const { times, series } = (JSON.parse(text) as { params: { data: Data } }).params.data; // written by the uploader
    for (const [input, values] of Object.entries(series))
      for (const [i, value] of values.entries()) if (value !== null) this.stored.add(`${input} ${times[i]} ${value}`);
  }
}

interface Data {
  readonly times: readonly string[];
  readonly series: Readonly<Record<string, readonly (number | null)[]>>;
}

test(`${restarts} crashes at any moment: never two requests within a second, none too large, nothing lost`, {
  timeout: 300_000,
}, async () => {
  using folder = temporaryFolder();
  const world = new ManualClock();
  const random = seeded(5);
  const service = new StrictService(world, random);
  const blocks = new DurableBlocks();
  const expected = new Set<string>();
  const live = { limits: { maxRequest: "64KiB" } };
  for (let crash = 0; crash < restarts; crash++) {
    const times = Float64Array.from({ length: 100 }, (_, i) => start + crash * 100e6 + i * 1e6);
    const series = Array.from({ length: 60 }, (_, k) => ({
      input: `tag${k}` as InputId,
      times,
      values: times.map((_, i) => crash + k * i),
    }));
    for (const { input, values } of series)
      for (const [i, value] of values.entries())
        expected.add(`${input} ${new Date(times[i]! / 1e3).toISOString().replace(".000Z", "Z")} ${value}`);
    blocks.append({ id: (crash + 1) as BlockId, series });
    const agent = await bornUploader(world, folder.path, blocks, service, live);
    await world.advance(random() * 4_000);
    await agent.kill();
  }
  await bornUploader(world, folder.path, blocks, service, live);
  for (let minutes = 0; blocks.unsettled > 0 && minutes < 60; minutes++) await world.advance(60_000);
  expect(blocks.unsettled).toBe(0);
  expect(service.stored).toEqual(expected);
  const gaps = service.starts.slice(1).map((at, i) => at - service.starts[i]!);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000);
  expect(service.largest).toBeLessThanOrEqual(maxRequest);
  // Else it would say nothing.
  expect(service.largest).toBeGreaterThan(maxRequest * 0.95);
  expect(service.starts.length).toBeGreaterThan(restarts / 4);
});
