// The workloads for packing, fixed and seeded: points of many series as a buffer would yield them.
import type { Series } from "../../src/core/block.ts";
import type { InputId } from "../../src/core/point.ts";
import { seeded } from "./runtime.ts";

const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;
const second = 1e6;

/** A random walk with one or two decimals, like measured values: 4.3 characters on average. */
function walk(times: readonly number[], tag: number, random: () => number): Series {
  const scale = 10 ** (1 + (tag % 2));
  let value = random() * 100;
  const values = times.map(() => {
    value += random() - 0.5;
    return Math.round(value * scale) / scale;
  });
  return {
    input: `line1.machine2.t${String(tag).padStart(3, "0")}` as InputId,
    times: Float64Array.from(times, (time) => start + time),
    values: Float64Array.from(values),
  };
}

const each = (count: number, of: (i: number) => number) => Array.from({ length: count }, (_, i) => of(i));

/** A: 1,000 polled tags that share their times. */
export function polled(seconds: number, tags = 1_000): Series[] {
  const random = seeded(1);
  const times = each(seconds, (i) => i * second);
  return each(tags, (tag) => tag).map((tag) => walk(times, tag, random));
}

/** B: 1,000 tags once a second, each with its own phase in milliseconds and a jitter of ±2 ms. */
export function unrelated(seconds: number, tags = 1_000): Series[] {
  const random = seeded(2);
  return each(tags, (tag) => tag).map((tag) => {
    const phase = 2 + Math.floor(random() * 996);
    return walk(
      each(seconds, (i) => (i * 1_000 + phase + Math.floor(random() * 5) - 2) * 1_000),
      tag,
      random,
    );
  });
}

/** C: 5 poll groups of 100 tags, 30 devices of 10 that share a time, 200 single tags; each once a second. */
export function grouped(seconds: number): Series[] {
  const random = seeded(3);
  const phases = each(1_000, () => Math.floor(random() * 1_000));
  return each(1_000, (tag) => tag).map((tag) => {
    const group = tag < 500 ? Math.floor(tag / 100) : tag < 800 ? 5 + Math.floor((tag - 500) / 10) : tag;
    return walk(
      each(seconds, (i) => i * second + phases[group]! * 1_000),
      tag,
      random,
    );
  });
}

/** D: tags stored on change, at rates that follow a power law: 10 a second, 5.7, 4.2, ... */
export function changing(seconds: number, tags = 1_000): Series[] {
  const random = seeded(4);
  return each(tags, (tag) => tag).map((tag) => {
    const count = Math.max(1, Math.round((10 / (tag + 1) ** 0.8) * seconds));
    const times = each(count, () => Math.floor(random() * seconds * 1_000) * 1_000).toSorted((a, b) => a - b);
    return walk(
      times.filter((time, i) => time !== times[i - 1]),
      tag,
      random,
    );
  });
}
