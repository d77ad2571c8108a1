// What the gap record contains about the time without a connection: whether the broker had queued the messages.
import { expect, test } from "vitest";
import { openMqttSource } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { politeAnswer, scriptedBroker } from "../../support/scripted-broker.ts";

const signal = new AbortController().signal;

test.each([
  ["a session that the broker has kept is what the messages come from", true, 1, "kept"],
  ["a new session has none of the messages", false, 1, undefined],
  ["a session keeps no messages of subscriptions with QoS 0", true, 0, undefined],
] as const)("%s", async (_, sessionPresent, qos, how) => {
  await using broker = await scriptedBroker((packet, client) => {
    if (packet.cmd === "connect") client.send({ cmd: "connack", reasonCode: 0, sessionPresent });
    else politeAnswer(packet, client);
  });
  const options = { url: broker.url, qos };
  await using source = await openMqttSource({ options, tags: [{ topic: "a" }] }, testRuntime(), signal);
  expect(source.recovery?.how).toBe(how);
  expect(source.retainedBy).toBe(qos === 0 ? undefined : "the broker");
});
