// Agents that are killed again and again deliver a backlog. Each kill repeats at most the request in flight.
// Even processes that live for seconds make progress.
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { epochMicros, type InputId, type Point } from "../../src/core/point.ts";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { seed } from "../support/property.ts";
import { seeded, testRuntime } from "../support/runtime.ts";
import { ScriptedService } from "../support/scripted-service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const integration = "c8ktonqsahsmemfs7lv0";
const insert = "integration.insert";
const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;
const never = new AbortController().signal;
const kills = Number(process.env.TAGFERRY_BACKLOG_KILLS ?? 4);
const tags = 1_000;

/** Points of 8 polls of 1,000 tags, a minute ago, appended together. */
function polled(at: number): Point[] {
  return Array.from({ length: 8 * tags }, (_, i) => ({
    input: `line1.tag${i % tags}` as InputId,
    time: epochMicros(start + (at * 8 + Math.floor(i / tags)) * 1e6),
    value: i / 10,
  }));
}

/** The same points with 17 digits per value: 8,000 points take 150 KB. */
function precise(at: number): Point[] {
  return polled(at).map((point, i) => ({ ...point, value: (i + 1) / 7 }));
}

/** Points of tags that have no times in common. */
function unrelated(at: number): Point[] {
  return Array.from({ length: 600 }, (_, i) => ({
    input: `line1.tag${i % 200}` as InputId,
    time: epochMicros(start + (at * 3 + Math.floor(i / 200)) * 1e6 + (i % 200) * 1_001),
    value: i / 10,
  }));
}

async function fill(directory: string, appends: number, pointsOf: (at: number) => Point[]): Promise<number> {
  const config = bufferOptions.parse({ reserveFreeDisk: "0" });
  await using buffer = await openDiskBuffer({ directory, integration, config }, testRuntime(), never);
  for (let at = 0; at < appends; at++) await buffer.append(pointsOf(at), { awaited: false }, never);
  return buffer.stats().unsettledPoints;
}

test.for([
  ["polled tags, a block larger than a request", "64KiB", 10, precise],
  ["polled tags, blocks smaller than a request", "256KiB", 50, polled],
  ["tags that share no times", "64KiB", 30, unrelated],
] as const)(
  `%s: ${kills} kills repeat a request each at most, seed ${seed}`,
  {
    timeout: 120_000 + kills * 20_000,
  },
  async ([, maxRequest, appends, pointsOf]) => {
    using folder = temporaryFolder();
    const random = seeded(seed);
    const points = await fill(folder.file("data/buffer"), appends, pointsOf);
    await using service = await ScriptedService.open();
    const configuration = `version: 1
agent: { name: drill, dataDir: ${JSON.stringify(folder.file("data"))}, ownSignals: off }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: x } }, limits: { maxRequest: ${maxRequest} } }
buffer: { reserveFreeDisk: 0 }
http: { listen: "127.0.0.1:0" }
sources: {}
`;
    const stored = () => service.stored.size;
    let inFlight = 0;
    for (let kill = 0; kill < kills && stored() < points; kill++) {
      await using agent = await startAgent({ folder: folder.path, configuration });
      // Each agent delivers some requests and is then killed at a random moment.
      const before = stored();
      await eventually(() => stored() > before, 60_000);
      await new Promise((resolve) => setTimeout(resolve, random() * 2_500));
      await agent.kill();
      inFlight++;
    }
    const kept = stored();
    await using last = await startAgent({ folder: folder.path, configuration });
    await eventually(async () => (await last.status()).buffer.unsettledPoints === 0, 180_000);

    const largest = Math.max(
      ...service
        .requests(insert)
        .map(({ request }) =>
          Object.values(request.params.data?.series ?? {}).reduce(
            (sum, values) => sum + values.filter((value) => value !== null).length,
            0,
          ),
        ),
    );
    expect(stored()).toBe(points);
    expect(kept).toBeGreaterThan(0);
    expect(service.repeated).toBeLessThanOrEqual(inFlight * largest);
  },
);
