// Subscriptions of a resumed session: the broker has them as the configuration says, or they are requested again.
import { expect, test } from "vitest";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { brief, openMqttSource, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { politeAnswer, type ScriptedBroker, scriptedBroker } from "../../support/scripted-broker.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const { signal } = new AbortController();
const version = 4;

/** A broker of MQTT 3.1.1 that has kept the session from the second connection on, and grants at most this QoS. */
function keepingBroker(answers: { readonly most?: number; readonly cutsFirst?: boolean } = {}) {
  const { most = 2, cutsFirst = false } = answers;
  return scriptedBroker(
    (packet, client, connection) => {
      if (packet.cmd !== "subscribe") return politeAnswer(packet, client, { sessionPresent: connection > 0 });
      if (cutsFirst && connection === 0) return client.socket.destroy();
      const granted = packet.subscriptions.map(({ qos }) => Math.min(qos, most));
      client.send({ cmd: "suback", messageId: packet.messageId ?? 0, granted });
    },
    { version },
  );
}

/** `filter qos` of each filter requested on a connection. */
function requested({ connections }: ScriptedBroker, connection: number): string[] {
  const packets = connections[connection]?.packets ?? [];
  return packets.flatMap((packet) =>
    packet.cmd === "subscribe" ? packet.subscriptions.map(({ topic, qos }) => `${topic} ${qos}`) : [],
  );
}

function opener(url: string, stateDir: string) {
  return (options: Readonly<Record<string, unknown>>, ...tags: readonly Readonly<Record<string, unknown>>[]) =>
    openMqttSource({ options: { url, ...options }, tags, stateDir }, testRuntime(), signal);
}

test("a subscription that the broker did not answer before the connection was lost is requested again", async () => {
  await using broker = await keepingBroker({ cutsFirst: true });
  using folder = temporaryFolder();
  const open = opener(broker.url, folder.path);
  await expect(open({ protocolVersion: version }, { topic: "a" })).rejects.toMatchObject({
    code: "SOURCE_UNREACHABLE",
  });

  await using _source = await open({ protocolVersion: version }, { topic: "a" });

  expect(requested(broker, 1)).toEqual(["a 1"]);
});

test("another QoS in the configuration is requested, although the broker has the filter", async () => {
  await using broker = await keepingBroker();
  using folder = temporaryFolder();
  const open = opener(broker.url, folder.path);
  for (const qos of [0, 1, 1]) {
    await using _source = await open({ protocolVersion: version, qos }, { topic: "a" });
  }

  expect([0, 1, 2].map((connection) => requested(broker, connection))).toEqual([["a 0"], ["a 1"], []]);
});

test("a filter that the broker granted with QoS 0 only counts as unprotected in the resumed session, too", async () => {
  await using broker = await keepingBroker({ most: 0 });
  using folder = temporaryFolder();
  const open = opener(broker.url, folder.path);
  {
    await using _source = await open({ protocolVersion: version }, { topic: "a" });
  }

  await using source = await open({ protocolVersion: version }, { topic: "a" });

  expect(requested(broker, 1)).toEqual([]);
  const { retainedBy, recovery } = source;
  expect({ retainedBy, recovery, details: source.details?.() }).toMatchObject({
    retainedBy: undefined,
    recovery: undefined,
    details: { session: "resumed", unprotectedSubscriptions: 1 },
  });
});

test.each([
  ["a new tag", [{ topic: "plant/#" }], [{ topic: "plant/#" }, { topic: "plant/mode", retained: "use" }]],
  ["a tag that ignored it", [{ topic: "plant/mode", retained: "ignore" }], [{ topic: "plant/mode", retained: "use" }]],
] as const)("%s gets the retained message of a filter that the session has", async (_name, before, after) => {
  await using broker = await openMqttBroker();
  using folder = temporaryFolder();
  await broker.publish("plant/mode", "3", { retain: true });
  const open = opener(broker.url, folder.path);
  {
    await using _source = await open({}, ...before);
  }

  await using source = await open({}, ...after);

  expect(brief(await pull(source, signal).readings(1))).toEqual(["plant/mode=3"]);
});

test.each([
  ["with the same tags, only a new session brings retained messages", [{ topic: "a/#" }], 1],
  ["with another tag they are requested", [{ topic: "a/#" }, { topic: "a/b" }], 0],
] as const)("MQTT 5: %s", async (_name, tags, expected) => {
  await using broker = await scriptedBroker((packet, client, connection) =>
    politeAnswer(packet, client, { sessionPresent: connection > 0 }),
  );
  using folder = temporaryFolder();
  const open = opener(broker.url, folder.path);
  {
    await using _source = await open({}, { topic: "a/#" });
  }
  await using _source = await open({}, ...tags);

  const subscribe = await broker.connections[1]?.received("subscribe");
  expect(subscribe?.subscriptions).toMatchObject([{ topic: "a/#", rh: expected }]);
});

test.each([
  [3_600, "the broker keeps the session for 1h, session.expiry is 1d: messages of a longer interruption are lost"],
  [0, "the broker does not keep the session, session.expiry is 1d: messages of a longer interruption are lost"],
  [86_400, undefined],
])("a broker that keeps the session for %d s is reported if that is less than configured", async (seconds, advice) => {
  await using broker = await scriptedBroker((packet, client) => {
    const properties = { sessionExpiryInterval: seconds };
    if (packet.cmd === "connect") client.send({ cmd: "connack", reasonCode: 0, sessionPresent: false, properties });
    else politeAnswer(packet, client);
  });
  using folder = temporaryFolder();
  const runtime = testRuntime();
  const options = { url: broker.url, session: { expiry: "24h" } };
  const text = { options, tags: [{ topic: "a" }], stateDir: folder.path };

  await using source = await openMqttSource(text, runtime, signal);

  expect(source.details?.()["advice"]).toBe(advice);
  expect(runtime.lines.filter(({ level }) => level === "warn").map(({ message }) => message)).toEqual(
    advice === undefined ? [] : [advice],
  );
});
