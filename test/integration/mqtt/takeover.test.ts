// A session that another client takes over repeatedly is reported, at whatever point the broker closes the connection.
import type { Packet } from "mqtt-packet";
import { expect, test } from "vitest";
import { isAgentError } from "../../../src/core/errors.ts";
import { mqttDriver } from "../../../src/source/mqtt/driver.ts";
import { mqttConfig, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { politeAnswer, type ScriptedClient, scriptedBroker } from "../../support/scripted-broker.ts";

const { signal } = new AbortController();
const message: Packet = { cmd: "publish", messageId: 1, topic: "a", payload: "1", qos: 1, dup: false, retain: false };

type End = (packet: Packet, client: ScriptedClient) => void;

// The ways in which a broker closes a connection when another client uses the same identifier.
const closedAfterMessages: End = (packet, client) => {
  politeAnswer(packet, client);
  if (packet.cmd === "subscribe") client.socket.end();
};
const closedDuringSubscribe: End = (packet, client) => {
  if (packet.cmd === "connect") politeAnswer(packet, client);
  else client.socket.end();
};
// The kernel resets a connection that is closed while it has unread packets of the client.
const resetDuringSubscribe: End = (packet, client) => {
  if (packet.cmd === "connect") politeAnswer(packet, client);
  else client.socket.resetAndDestroy();
};
const resetDuringMessages: End = (packet, client) => {
  politeAnswer(packet, client);
  if (packet.cmd === "subscribe") client.send(message);
  if (packet.cmd === "puback") client.socket.resetAndDestroy();
};
const named: End = (packet, client) => {
  politeAnswer(packet, client);
  if (packet.cmd !== "subscribe") return;
  client.send({ cmd: "disconnect", reasonCode: 142 });
  client.socket.end();
};
const mixed = [closedDuringSubscribe, resetDuringMessages, closedAfterMessages, resetDuringSubscribe];

/** Opens a source once for each of `rounds`. Returns the code with which each connection ended. */
async function codesOf(rounds: readonly End[], servers: readonly string[] = []): Promise<readonly string[]> {
  await using broker = await scriptedBroker((packet, client, connection) => rounds[connection]?.(packet, client));
  const [url, ...others] = [...servers, broker.url];
  const config = mqttConfig({ options: { url, servers: others }, tags: [{ topic: "a" }] });
  const codes: string[] = [];
  for (const _round of rounds) codes.push(await ending(config));
  return codes;
}

async function ending(config: ReturnType<typeof mqttConfig>): Promise<string> {
  try {
    await using source = await mqttDriver.open(config, testRuntime(), signal);
    await using puller = pull(source, signal);
    for (;;) await puller.readings(1);
  } catch (error) {
    if (!isAgentError(error)) throw error;
    return error.code;
  }
}

const [closed, takenOver] = ["SOURCE_UNREACHABLE", "SOURCE_TAKEN_OVER"];

test.each<[string, readonly End[]]>([
  ["after the subscription", Array<End>(7).fill(closedAfterMessages)],
  ["before it answers the subscription", Array<End>(7).fill(closedDuringSubscribe)],
  ["before it reads the subscription", Array<End>(7).fill(resetDuringSubscribe)],
  ["before it reads an acknowledgement", Array<End>(7).fill(resetDuringMessages)],
  ["each time elsewhere", [...mixed, ...mixed.slice(0, 3)]],
])(
  "the fifth connection that the broker ends without a reason is a takeover, and each one after it: %s",
  async (_, rounds) => {
    expect(await codesOf(rounds)).toEqual([closed, closed, closed, closed, takenOver, takenOver, takenOver]);
  },
);

test("a takeover stays the reported cause when the broker's reason is lost the next time", async () => {
  const rounds = [named, ...mixed, named, closedAfterMessages];

  expect(await codesOf(rounds)).toEqual(rounds.map(() => takenOver));
});

test("a takeover at the second broker is reported while the first one is off", async () => {
  await using off = await scriptedBroker(() => {});
  const { url } = off;
  await off[Symbol.asyncDispose]();

  expect(await codesOf([named, closedDuringSubscribe], [url])).toEqual([takenOver, takenOver]);
});
