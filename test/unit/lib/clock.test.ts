import { expect, test, vi } from "vitest";
import { systemClock } from "../../../src/lib/time/clock.ts";

test("the monotonic time is that of the machine, so that processes can exchange it", () => {
  const machineMs = Number(process.hrtime.bigint()) / 1e6;
  expect(Math.abs(systemClock().monotonic() - machineMs)).toBeLessThan(10_000);
});

test("waits on a grid end together at the nearest multiple, with one timer", async () => {
  vi.useFakeTimers({ now: 0 });
  try {
    const clock = systemClock();
    const stop = new AbortController();
    const ended: number[] = [];
    const waits = [600, 1_000, 1_400].map((ms) =>
      clock.sleep(ms, stop.signal, 1_000).then(() => void ended.push(performance.now())),
    );
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(1_010);
    await Promise.all(waits);
    expect(new Set(ended).size).toBe(1);
    expect(Math.round(ended[0]! / 1_000)).toBe(1);

    const given = [clock.sleep(900, stop.signal, 1_000), clock.sleep(1_100, stop.signal, 1_000)];
    stop.abort(new Error("enough"));
    for (const wait of given) await expect(wait).rejects.toThrow("enough");
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test("a wait whose time on the grid has passed makes Node print no warning", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  try {
    // The nearest multiple is a sixth of the time since the start earlier.
    const gridMs = performance.now() / 1.2;
    await systemClock().sleep(0, new AbortController().signal, gridMs);

    expect(warn).not.toHaveBeenCalled();
  } finally {
    warn.mockRestore();
  }
});
