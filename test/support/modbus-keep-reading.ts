// Reads a Modbus source as the agent does: reopens it whenever the connection is lost, here with a shorter back-off.
import { setTimeout as sleep } from "node:timers/promises";
import { isAgentError } from "../../src/core/errors.ts";
import type { Reading } from "../../src/core/source.ts";
import { BackOff } from "../../src/lib/flow/repeat.ts";
import { type ModbusTagText, openModbusSource } from "./modbus-source.ts";
import { testRuntime } from "./runtime.ts";

export interface KeptReading extends AsyncDisposable {
  /** All readings so far. */
  readonly readings: readonly Reading[];
  /** Codes of the errors with which the connection was lost or could not be opened. */
  readonly losses: readonly string[];
  /** The number of readings of the tag with this quality so far. */
  count(quality: Reading["quality"], tag?: number): number;
}

export function keepReading(options: Record<string, unknown>, tags: readonly ModbusTagText[]): KeptReading {
  const stop = new AbortController();
  const readings: Reading[] = [];
  const losses: string[] = [];
  const runtime = testRuntime();
  const backOff = new BackOff({ minMs: 20, maxMs: 200, random: runtime.random });
  const running = (async () => {
    while (!stop.signal.aborted)
      try {
        await using source = await openModbusSource(options, tags, runtime, stop.signal);
        for await (const delivery of source.deliveries(stop.signal)) {
          backOff.reset();
          readings.push(...delivery.readings);
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        // Any other error is a defect of the driver.
        if (!isAgentError(error) || !error.code.startsWith("SOURCE_")) throw error;
        losses.push(error.code);
        await sleep(backOff.next());
      }
  })();
  return {
    readings,
    losses,
    count: (quality, tag) => readings.filter((r) => r.quality === quality && (tag ?? r.tag) === r.tag).length,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}
