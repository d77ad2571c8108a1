import { expect, test } from "vitest";
import type { Link } from "../../../../src/source/opcua/session/link.ts";
import { sessionKeepAlive } from "../../../../src/source/opcua/session/server-facts.ts";
import type { Services } from "../../../../src/source/opcua/session/services.ts";
import { testRuntime } from "../../../support/runtime.ts";

test("a session is used three times within its timeout, and the server's state is reported", async () => {
  const stop = new AbortController();
  const naps: number[] = [];
  const states = [0, 4, undefined, 0];
  const said: (string | undefined)[] = [];
  const clock = {
    now: () => testRuntime().clock.now(),
    monotonic: () => 0,
    async sleep(ms: number, signal: AbortSignal) {
      naps.push(ms);
      said.push(keepAlive.state);
      if (states.length === 0) stop.abort(new Error("enough"));
      signal.throwIfAborted();
    },
  };
  const services = {
    async read() {
      const value = states.shift();
      if (value === undefined) throw new Error("no answer");
      return [{ value: { value } }];
    },
  } as unknown as Services; // the only part that is used
  const link = { session: { timeoutMs: 12_000 } } as unknown as Link; // the only part that is used
  const runtime = testRuntime({ clock });
  const keepAlive = sessionKeepAlive(link, services, runtime);
  await expect(keepAlive.run(stop.signal)).rejects.toThrow("enough");
  expect(naps).toEqual([4_000, 4_000, 4_000, 4_000]);
  expect(said).toEqual([undefined, "shutting down", "shutting down", undefined]);
  expect(runtime.lines.map(({ fields }) => fields.state)).toEqual(["shutting down", "running"]);
});
