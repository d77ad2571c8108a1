// Points of a polled device cannot be stored for a while. The record tells what became of them.
import { expect, test } from "vitest";
import { gapFolder } from "../../src/agent/gaps/gap-file.ts";
import { openGapRecord } from "../../src/agent/gaps/gap-record.ts";
import { sourceGaps } from "../../src/agent/gaps/source-gaps.ts";
import { runPipeline } from "../../src/agent/pipeline.ts";
import { sourceMonitor } from "../../src/agent/status/source-monitor.ts";
import type { PointBuffer } from "../../src/core/buffer.ts";
import { AgentError } from "../../src/core/errors.ts";
import { openMapping } from "../../src/mapping/source-mapping.ts";
import { eventually } from "../support/eventually.ts";
import { rule } from "../support/mapping.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { openModbusSource } from "../support/modbus-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("what a Modbus device answered while the disk was full is stored afterwards, and is no loss in the record", async () => {
  using folder = temporaryFolder();
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [7]);
  const runtime = testRuntime();
  await using record = await openGapRecord(gapFolder(folder.path), ["bus"], runtime);
  using gaps = sourceGaps(record, { name: "bus", tags: 1 }, runtime);
  using mapping = openMapping(
    { source: "bus", rules: [rule({ input: "a" })], catalog: { describe: () => {} }, watch: gaps },
    runtime,
  );
  gaps.names((tag, captures, address) => mapping.inputOf(tag, captures, address));
  const disk = { isFull: false, stored: 0 };
  const buffer: Pick<PointBuffer, "append"> = {
    append: async (points) => {
      if (disk.isFull) throw new AgentError("BUFFER_UNAVAILABLE", "no space left on the disk");
      disk.stored += points.length;
    },
  };
  const stop = new AbortController();
  const running = runPipeline(
    {
      open: (given, signal) =>
        openModbusSource({ url: device.url, timeout: "60s" }, [{ at: "hr:0", every: 50 }], given, signal),
      mapping,
      buffer: buffer as PointBuffer, // the pipeline only appends
      monitor: sourceMonitor({ name: "bus", type: "modbus", tags: 1 }, runtime),
      gaps,
    },
    runtime,
    stop.signal,
  );
  const rows = () => record.list(0, 9).gaps.map(({ cause, state, outcome }) => [cause, state, outcome]);
  await eventually(() => disk.stored > 2);
  disk.isFull = true;
  await eventually(() => rows().length > 0);
  expect(rows()).toEqual([["buffer", "open", undefined]]);
  const before = device.requests.length;
  await eventually(() => device.requests.length > before + 5);
  disk.isFull = false;
  const answered = device.requests.length - 1;
  await eventually(() => disk.stored >= answered);
  stop.abort(new Error("the test ends"));
  await running;

  expect(rows()).toEqual([["buffer", "filled", "the agent kept them in memory"]]);
});
