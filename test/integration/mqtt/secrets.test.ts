// The address of a broker may contain a token. It must not appear in a log or in the status.
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { openMqttSource, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { openWebSocketBridge } from "../../support/web-socket-bridge.ts";

const tags = [{ topic: "a" }];
const secrets = "token=tok-9f31&jwt=ey-7c20#part-55d1";
const isHidden = (shown: unknown) => {
  const text = inspect(shown, { depth: null });
  expect(text).toContain("/mqtt?***");
  for (const secret of ["tok-9f31", "ey-7c20", "part-55d1"]) expect(text).not.toContain(secret);
};

test("a token in the address of a broker is in no log line, no status and no connection error", async () => {
  const { signal } = new AbortController();
  await using broker = await openMqttBroker();
  await using bridge = await openWebSocketBridge(broker);
  const runtime = testRuntime();
  const options = { url: `${bridge.url}/mqtt?${secrets}`, verify: "none" };
  await using source = await openMqttSource({ options, tags }, runtime, signal);
  isHidden(source.details?.());
  const next = pull(source, signal).next();
  broker.cutConnections();
  isHidden(await next.catch((error: unknown) => error));
  isHidden(runtime.lines);
});

test("a token in the addresses of brokers that cannot be reached is neither logged nor in the error", async () => {
  const { signal } = new AbortController();
  const runtime = testRuntime();
  const [url, ...servers] = ["ws", "wss"].map((scheme) => `${scheme}://127.0.0.1:1/mqtt?${secrets}`);
  const options = { url, servers, verify: "none" };
  isHidden(await openMqttSource({ options, tags }, runtime, signal).catch((error: unknown) => error));
  isHidden(runtime.lines);
});
