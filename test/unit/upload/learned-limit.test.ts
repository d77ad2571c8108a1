// The size limit of requests after the service found one too large.
import { join } from "node:path";
import { expect, test } from "vitest";
import { type LearnedLimit, openLearnedLimit } from "../../../src/upload/failures/learned-limit.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const mebi = 2 ** 20;

/** Sends requests of the permitted size. `takes`: whether the service accepts a size. Returns the sizes. */
async function send(limit: LearnedLimit, requests: number, takes: (bytes: number) => boolean): Promise<number[]> {
  const sizes: number[] = [];
  for (let i = 0; i < requests; i++) {
    const bytes = limit.maxBytes;
    sizes.push(bytes);
    if (takes(bytes)) limit.accepted(bytes);
    else await limit.tooLarge(bytes);
  }
  return sizes;
}

async function openLimit(folder: string, clock = new ManualClock()) {
  return openLearnedLimit(join(folder, "limit.json"), 8 * mebi, testRuntime({ clock }));
}

test("once the service accepts large requests again, their size doubles with each success", async () => {
  using folder = temporaryFolder();
  const limit = await openLimit(folder.path);
  await send(limit, 4, () => false);

  const sizes = await send(limit, 5, () => true);
  expect(sizes.map((bytes) => bytes / mebi)).toEqual([0.5, 1, 2, 4, 8]);
});

test("while larger requests stay too large they are tried more and more rarely, down to one in 65", async () => {
  using folder = temporaryFolder();
  const limit = await openLimit(folder.path);
  const takes = (bytes: number) => bytes <= mebi;
  await send(limit, 400, takes);

  const sizes = await send(limit, 650, takes);
  expect(sizes.filter((bytes) => bytes > mebi)).toHaveLength(10);
  expect(Math.min(...sizes)).toBe(mebi);

  // It still grows when the service accepts larger requests again.
  const after = await send(limit, 70, () => true);
  expect(after.at(-1)).toBe(8 * mebi);
});

test.each([700_000, 1_000_000, 1_900_000, 5_000_000])(
  "where the service takes %i bytes, requests come within an eighth of that",
  async (most) => {
    using folder = temporaryFolder();
    const limit = await openLimit(folder.path);
    const takes = (bytes: number) => bytes <= most;
    await send(limit, 40, takes);

    const sizes = (await send(limit, 600, takes)).filter(takes);
    expect(sizes.length).toBeGreaterThan(580);
    expect(Math.min(...sizes)).toBeGreaterThan((most * 7) / 8);
  },
);

test("accepted small requests do not imply that larger ones are accepted", async () => {
  using folder = temporaryFolder();
  const limit = await openLimit(folder.path);
  await limit.tooLarge(8 * mebi);
  for (let i = 0; i < 1_000; i++) limit.accepted(2 * mebi);
  expect(limit.maxBytes).toBe(4 * mebi);

  limit.accepted(2 * mebi + 1);
  expect(limit.maxBytes).toBe(8 * mebi);
});

test("a learned size applies after a restart, too, and is forgotten after a day without larger requests", async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock();
  const limit = await openLimit(folder.path, clock);
  const sizes = async () => [limit.maxBytes / mebi, (await openLimit(folder.path, clock)).maxBytes / mebi];
  await limit.tooLarge(8 * mebi);
  await clock.advance(86_399_000);
  expect(await sizes()).toEqual([4, 4]);
  await clock.advance(1_000);
  expect(await sizes()).toEqual([8, 8]);
});
