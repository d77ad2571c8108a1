// Subscriptions: as few as cover the tags, each with its own answer. Those of an earlier configuration are removed.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { brief, openMqttSource, type Puller, pull } from "../../support/mqtt-source.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { politeAnswer, scriptedBroker } from "../../support/scripted-broker.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const { signal } = new AbortController();

test("overlapping templates are subscribed once and each tag gets its readings", async () => {
  await using broker = await openMqttBroker();
  const tags = [{ topic: "a/{rest...}" }, { topic: "a/{x}/t" }, { topic: "a/b/t" }, { topic: "c" }];
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);

  await broker.publish("a/b/t", "1");

  const readings = await pull(source, signal).readings(3);
  expect(broker.subscriptions("north-hall")).toEqual(["a/#", "c"]);
  expect(readings).toMatchObject([
    { tag: 0, captures: { rest: "b/t" } },
    { tag: 1, captures: { x: "b" } },
    { tag: 2, captures: {} },
  ]);
});

test("retained messages are requested once, and distinguished from live ones by their flag", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  const options = { url: broker.url, qos: 2 };
  await using _source = await openMqttSource({ options, tags: [{ topic: "a" }] }, testRuntime(), signal);

  const subscribe = await broker.connections[0]?.received("subscribe");

  expect(subscribe?.subscriptions).toMatchObject([{ topic: "a", qos: 2, rap: false, rh: 1 }]);
});

test("a refused filter shows under its tag and does not affect others", async () => {
  await using broker = await openMqttBroker({ maySubscribe: (filter) => filter !== "closed/a" });
  const runtime = testRuntime();
  const tags = [{ topic: "open/a" }, { topic: "closed/a" }, { topic: "open/b" }];
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, runtime, signal);
  const puller = pull(source, signal);

  const [refused] = await puller.readings(1);
  await broker.publish("open/a", "1");
  await broker.publish("open/b", "2");

  expect(refused).toMatchObject({ tag: 1, quality: "bad", value: undefined });
  expect(refused?.reason).toBe("the broker refused the subscription: unspecified error (128)");
  expect(brief(await puller.readings(2))).toEqual(["open/a=1", "open/b=2"]);
  expect(runtime.lines).toContainEqual(
    expect.objectContaining({ level: "error", message: "the broker refused a subscription" }),
  );
});

test("when a wide filter is refused, the narrower ones that it replaced are subscribed", async () => {
  await using broker = await openMqttBroker({ maySubscribe: (filter) => filter !== "a/#" });
  const tags = [{ topic: "a/#" }, { topic: "a/+/t" }, { topic: "a/b/t" }];
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);

  expect(broker.subscriptions("north-hall")).toEqual(["a/+/t"]);
  expect(source.details?.()).toMatchObject({ subscriptions: 1, refusedSubscriptions: 1 });
});

test("a broker that grants a lower QoS is reported: it queues nothing, and no gap counts as filled by it", async () => {
  const open = async (granted: number, runtime = testRuntime()) => {
    await using broker = await scriptedBroker((packet, client) => {
      if (packet.cmd === "subscribe")
        client.send({ cmd: "suback", messageId: packet.messageId ?? 0, granted: [granted] });
      else politeAnswer(packet, client, { sessionPresent: true });
    });
    await using source = await openMqttSource(
      { options: { url: broker.url }, tags: [{ topic: "a" }] },
      runtime,
      signal,
    );
    const { retainedBy, recovery } = source;
    return {
      retainedBy,
      recovery,
      details: source.details?.(),
      warned: runtime.lines.some(({ message }) => message.includes("QoS 0 only")),
    };
  };
  expect(await open(1)).toMatchObject({ retainedBy: "the broker", recovery: { how: "kept" }, warned: false });
  expect(await open(0)).toMatchObject({
    retainedBy: undefined,
    recovery: undefined,
    details: { subscriptions: 1, unprotectedSubscriptions: 1 },
    warned: true,
  });
});

test("a broker that refuses every subscription refuses the source", async () => {
  await using broker = await openMqttBroker({ maySubscribe: () => false });
  const tags = [{ topic: "a" }];

  await expect(openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal)).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: `${broker.url} refused all subscriptions, such as a: unspecified error (128)`,
  });
});

test("subscriptions left in the session by an older configuration are unsubscribed", async () => {
  await using broker = await openMqttBroker();
  using folder = temporaryFolder();
  const options = { url: broker.url };
  const open = (...topics: string[]) =>
    openMqttSource({ options, tags: topics.map((topic) => ({ topic })), stateDir: folder.path }, testRuntime(), signal);
  {
    await using _source = await open("old/#", "kept");
  }
  await using _source = await open("kept", "new");

  expect(broker.subscriptions("north-hall")).toEqual(["kept", "new"]);
});

test("a filter is persisted before it is subscribed, so that a crash in between leaves none behind", async () => {
  using folder = temporaryFolder();
  let remembered: string | undefined;
  await using broker = await scriptedBroker((packet, client) => {
    if (packet.cmd === "subscribe") remembered = stateIn(folder.path);
    politeAnswer(packet, client);
  });
  const text = { options: { url: broker.url }, tags: [{ topic: "a/{x}" }], stateDir: folder.path };

  await using _source = await openMqttSource(text, testRuntime(), signal);

  expect(remembered).toContain('"filters":["a/+"]');
});

test("a state file that cannot be read or written causes only a warning", async () => {
  await using broker = await openMqttBroker();
  using folder = temporaryFolder();
  const runtime = testRuntime();
  writeFileSync(folder.file("state"), "in the way of the folder");
  const text = { options: { url: broker.url }, tags: [{ topic: "a" }], stateDir: folder.file("state") };

  await using source = await openMqttSource(text, runtime, signal);
  await broker.publish("a", "1");

  expect(brief(await pull(source, signal).readings(1))).toEqual(["a=1"]);
  expect(runtime.lines.map(({ message }) => message)).toContain("the state of the session could not be remembered");
});

test("the loss of the session is reported, since messages may be lost with it", async () => {
  await using broker = await scriptedBroker((packet, client) => politeAnswer(packet, client));
  using folder = temporaryFolder();
  const text = { options: { url: broker.url }, tags: [{ topic: "a" }], stateDir: folder.path };
  const runtime = testRuntime();
  {
    await using _source = await openMqttSource(text, runtime, signal);
  }
  expect(runtime.lines.filter(({ level }) => level === "warn")).toEqual([]);

  await using _source = await openMqttSource(text, runtime, signal);

  expect(runtime.lines).toContainEqual(
    expect.objectContaining({
      level: "warn",
      message: "the broker did not keep the session; what was published meanwhile is lost",
    }),
  );
});

test("retained messages are used as each tag defines: with a time of their own, always or never", async () => {
  await using broker = await openMqttBroker();
  await broker.publish("timed", '{"v":1,"ts":1767225600}', { retain: true });
  await broker.publish("bare", "2", { retain: true });
  const tags = [
    { topic: "timed", value: "$.v", time: { at: "$.ts" } },
    { topic: "timed", value: "$.v", retained: "ignore" },
    { topic: "bare" },
    { topic: "bare", retained: "use" },
    { topic: "end" },
  ];
  const runtime = testRuntime();
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, runtime, signal);
  await broker.publish("bare", "3");
  await broker.publish("end", "4");

  const readings = await pull(source, signal).readings(5);

  expect(readings.map(({ tag, value }) => `${tag}:${String(value)}`).toSorted()).toEqual([
    "0:1",
    "2:3",
    "3:2",
    "3:3",
    "4:4",
  ]);
  expect(runtime.metric("source_mqtt_stale_values_total")).toBe(1);
});

test("names from devices are known after a restart before the broker repeats them, and then requested again", async () => {
  await using broker = await openMqttBroker();
  using folder = temporaryFolder();
  const names = { of: "id", topic: "m/{c}", id: "$[*].id", name: "$[*].name" };
  const tags = [{ topic: "d/{c}", value: "$[*].v", capture: { id: "$[*].id" }, names }];
  const text = { options: { url: broker.url }, tags, stateDir: folder.path };
  const nextName = async (puller: Puller) => (await puller.readings(1))[0]?.captures["name"];
  await broker.publish("m/one", '[{"id":"7","name":"speed"}]', { retain: true });
  {
    await using source = await openMqttSource(text, testRuntime(), signal);
    const puller = pull(source, signal);
    await eventually(async () => {
      await broker.publish("d/one", '[{"id":"7","v":1}]');
      return (await nextName(puller)) === "speed";
    });
  }
  await broker.publish("d/one", '[{"id":"7","v":2}]');
  await broker.publish("m/one", '[{"id":"7","name":"torque"}]', { retain: true, qos: 0 });

  await using source = await openMqttSource(text, testRuntime(), signal);
  const puller = pull(source, signal);

  expect(await nextName(puller)).toBe("speed");
  await eventually(async () => {
    await broker.publish("d/one", '[{"id":"7","v":3}]');
    return (await nextName(puller)) === "torque";
  });
  expect(broker.subscriptions("north-hall")).toEqual(["d/+", "m/+"]);
});

test("a topic that falls silent for longer than expected shows it under its tag", async () => {
  await using broker = await openMqttBroker();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const tags = [{ topic: "a", expectEvery: "10m" }];
  await using source = await openMqttSource({ options: { url: broker.url }, tags }, runtime, signal);
  const puller = pull(source, signal);
  await broker.publish("a", "1");
  expect(brief(await puller.readings(1))).toEqual(["a=1"]);

  await clock.advance(15 * 60_000);

  expect(brief(await puller.readings(1))).toEqual(["a=no message for 10m"]);
});

test("a subscription without an answer is logged and does not hold up the others", async () => {
  await using broker = await scriptedBroker((packet, client) => {
    if (packet.cmd !== "subscribe") politeAnswer(packet, client);
  });
  const runtime = testRuntime();
  const options = { url: broker.url, connectTimeout: "100ms" };

  await using _source = await openMqttSource({ options, tags: [{ topic: "a" }] }, runtime, signal);

  expect(runtime.lines.at(-1)).toMatchObject({ message: "the broker has not answered the subscriptions yet" });
});

/** The only state file in a folder. */
function stateIn(folder: string): string | undefined {
  const [name] = readdirSync(folder).filter((each) => each.endsWith(".json"));
  return name === undefined ? undefined : readFileSync(join(folder, name), "utf8");
}
