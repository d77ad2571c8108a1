// The first readings of the tags of a polled source after a connection, which end an outage.
//
//   connected         first delivery                       all tags are read, or 5 s have passed
//      | nothing is read   | unit 1, unit 2 … are read          | unit 9 is not read yet
//      +-------------------+------------------------------------+-------------------------------+ its first reading
//      -- row of the outage, to the latest first reading --|---------- row of unit 9 ----------|
//
//   state      event                                   next       action
//   idle       connection                              unread     remember the tags that are polled
//   unread     first delivery                          reading
//   reading    all tags are read, or 5 s have passed   idle       end the outage; a row for tags without a reading
//   reading    loss, suspension or stop                idle       the same, with the readings so far
//   unread     loss                                    idle       the outage continues
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { Reading } from "../../core/source.ts";
import { type TagFailures, togetherMs } from "./tag-failures.ts";

export interface FirstReadingsParts {
  readonly failures: Pick<TagFailures, "waits" | "read" | "waiting" | "flush">;
  readonly inputOf: (reading: Reading) => string | undefined;
  /** Ends the outage. Returns the time since which tags without a reading are in no row. */
  readonly ended: (to: EpochMicros) => EpochMicros;
}

export function firstReadings({ failures, inputOf, ended }: FirstReadingsParts, clock: Clock) {
  const unread = new Set<string>();
  /** Monotonic times of the first delivery and of the latest first reading of a tag. The wall clock may be set. */
  let came: { readonly atMs: number; latestMs: number } | undefined;

  function begin(inputs: Iterable<string>): void {
    came = undefined;
    unread.clear();
    for (const input of inputs) unread.add(input);
  }

  /** Ends the outage, if there was a delivery since the connection. */
  function end(): void {
    if (!came) return;
    const sinceMs = clock.monotonic() - came.latestMs;
    const from = ended(epochMicros(Math.round(clock.now() - sinceMs * 1_000)));
    for (const input of unread) failures.waits(input, from);
    failures.flush();
    begin([]);
  }

  function endIfOver(): void {
    if (unread.size === 0 || (came && clock.monotonic() - came.atMs >= togetherMs)) end();
  }

  return {
    /** A connection polls these inputs. */
    begin,
    end,
    /** The connection is lost, or the source stops. */
    lost(): void {
      end();
      begin([]);
    },
    endIfOver,
    /** Whether `take` needs the next readings, apart from an outage that they end. */
    get areAwaited(): boolean {
      return unread.size > 0 || failures.waiting > 0;
    },
    /** Takes the readings of a delivery. `at`: when a reading with this time counts as recorded. */
    take(readings: readonly Reading[], at: (time: number) => EpochMicros): void {
      let latest: number | undefined;
      for (const reading of readings) {
        const input = reading.historical ? undefined : inputOf(reading);
        if (input === undefined) continue;
        const time = at(reading.time);
        if (unread.delete(input)) latest = Math.max(latest ?? time, time);
        failures.read(input, time);
      }
      const nowMs = clock.monotonic();
      const latestMs = latest === undefined ? nowMs : nowMs - (clock.now() - latest) / 1_000;
      if (!came) came = { atMs: nowMs, latestMs };
      else if (latest !== undefined) came.latestMs = Math.max(came.latestMs, latestMs);
      endIfOver();
    },
  };
}
