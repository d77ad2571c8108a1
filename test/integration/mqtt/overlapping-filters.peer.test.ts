// As overlapping-filters.test.ts, with mosquitto, which sends a message once for each filter over MQTT 5.
import { expect, test } from "vitest";
import type { Reading } from "../../../src/core/source.ts";
import { openMosquitto } from "../../support/mosquitto.ts";
import { openMqttSource, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const { signal } = new AbortController();

test.each([5, 4])(
  "over version %d, each tag reads each message once, also what was kept for the session",
  async (protocolVersion) => {
    await using broker = await openMosquitto();
    using folder = temporaryFolder();
    const { url, username, password } = broker;
    const options = { url, username, password, protocolVersion };
    const tags = [{ topic: "a/{x}/c" }, { topic: "{x}/b/c" }, { topic: "a/b/#" }, { topic: "end" }];
    const open = () => openMqttSource({ options, tags, stateDir: folder.path }, testRuntime(), signal);
    const publisher = await broker.publisher();
    const publish = async (from: number, to: number) => {
      for (let value = from; value < to; value++) await publisher.publishAsync("a/b/c", String(value), { qos: 1 });
    };
    {
      await using _source = await open();
    }
    await publish(0, 5);
    await using source = await open();
    await publish(5, 10);
    await publisher.publishAsync("end", "0", { qos: 1 });

    const puller = pull(source, signal);
    const readings: Reading[] = [];
    while (!readings.some(({ tag }) => tag === 3)) readings.push(...(await puller.readings(1)));

    const valuesOf = (tag: number) => readings.filter((reading) => reading.tag === tag).map(({ value }) => value);
    for (const tag of [0, 1, 2]) expect(valuesOf(tag)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  },
);
