// A log thread that is started before the options of its store are known.
import { expect, test } from "vitest";
import { type StoreStart, startLogWorker, workerPorts } from "../../../../src/buffer/disk/worker/worker-port.ts";
import { moment } from "../../../support/disk-store.ts";

const start: StoreStart = {
  options: {
    folder: "/nowhere",
    integration: "plant",
    maxSize: 2 ** 30,
    maxAgeMs: 86_400_000,
    reserveFreeDisk: 0,
    whenFull: "dropOldest",
    segmentBytes: 2 ** 22,
  },
  now: moment(0),
  again: false,
};
const code = (text: string) => new URL(`data:text/javascript,${encodeURIComponent(text)}`);
const never = new AbortController().signal;

test("opening a buffer rejects when its thread ends or fails meanwhile", async () => {
  const ended = startLogWorker(code("process.exit(3)"));
  const failed = startLogWorker(code("throw new Error('no memory')"));
  await Promise.allSettled([ended.opened, failed.opened]);

  await expect(workerPorts(ended)(start, never)).rejects.toThrow("the log thread has ended");
  await expect(workerPorts(failed)(start, never)).rejects.toThrow("no memory");
});

test("aborting the opening of a buffer ends the wait at once", async () => {
  const stop = new AbortController();
  const thread = startLogWorker(code("setInterval(() => {}, 1000)"));
  const opening = workerPorts(thread)(start, stop.signal);
  stop.abort(new Error("not any more"));

  await expect(opening).rejects.toThrow("not any more");
  expect(thread.worker.threadId).toBe(-1);
});
