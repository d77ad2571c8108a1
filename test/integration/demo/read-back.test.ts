// Reading back from the local service: the result equals what was inserted.
import { expect, test } from "vitest";
import { epochMicros, type InputId } from "../../../src/core/point.ts";
import { Secret } from "../../../src/core/secret.ts";
import { type ReaderOptions, readBack, readBackAndCompare } from "../../../src/demo/read-back.ts";
import { openService } from "../../../src/service/service.ts";
import { formatTimestamp } from "../../../src/wire/timestamp.ts";
import { testRuntime } from "../../support/runtime.ts";

const signal = new AbortController().signal;
const integration = "c8ktonqsahsmemfs7lv0";
const from = epochMicros(Date.parse("2026-03-01T08:00:00Z") * 1_000);
const span = { from, before: epochMicros(from + 1_500e6) };

function open() {
  const integrations = [
    { id: integration, password: new Secret("demo"), grants: ["admin" as const, "platform" as const] },
  ];
  const options = { listen: { host: "127.0.0.1", port: 0 }, data: ":memory:", integrations };
  return openService({ ...options, namespace: "platform", throttle: "off" }, testRuntime(), signal);
}

const readerOf = (url: string): ReaderOptions => ({
  url,
  integration,
  password: "demo",
  apiVersion: "1.1beta1",
  namespace: "platform",
});

async function insert(url: string, series: Record<string, (number | null)[]>, seconds: readonly number[]) {
  const times = seconds.map((second) => formatTimestamp(epochMicros(from + second * 1e6)));
  const params = { integration, data: { times, series } };
  const response = await fetch(`${url}/rpc`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-api-version": "1.1beta1",
      authorization: `Basic ${btoa(`${integration}:demo`)}`,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "integration.insert", params }),
  });
  expect(await response.json()).toMatchObject({ result: {} });
}

const id = (text: string) => text as InputId; // the texts in this file are Input IDs

test("every point of every signal is read back, over pages of items and times", async () => {
  await using service = await open();
  const inputs = Array.from({ length: 53 }, (_, i) => `plant.tag${i}`);
  const series = Object.fromEntries(inputs.map((input, i) => [input, [i + 0.25, i === 7 ? null : i + 100]]));
  await insert(service.url, series, [0, 1_400.000_001]);
  const stored = await readBack(readerOf(service.url), span, testRuntime(), signal);
  expect(stored.size).toBe(53);
  expect(stored.get(id("plant.tag52"))).toEqual(
    new Map([
      [52.25, [from]],
      [152, [from + 1_400_000_001]],
    ]),
  );
  expect(stored.get(id("plant.tag7"))).toEqual(new Map([[7.25, [from]]]));
});

test("points before and after the window are left out", async () => {
  await using service = await open();
  await insert(service.url, { a: [1, 2, 3, 4] }, [-1, 0, 1_499, 1_500]);
  const stored = await readBack(readerOf(service.url), span, testRuntime(), signal);
  expect([...(stored.get(id("a"))?.keys() ?? [])]).toEqual([2, 3]);
});

test("a lost, a duplicate and an unknown value are all found in the service's answer", async () => {
  await using service = await open();
  await insert(service.url, { a: [1, 2, 2], b: [9, null, null] }, [0, 1, 2]);
  const delivered = new Map([[id("a"), new Set([1, 2, 3])]]);
  expect(await readBackAndCompare(readerOf(service.url), delivered, span, testRuntime(), signal)).toMatchObject({
    read: 3,
    stored: 2,
    missing: 1,
    twice: 1,
    foreign: 1,
    exact: false,
  });
});

test("wrong credentials and an unreachable service have different errors", async () => {
  const service = await open();
  const reader = readerOf(service.url);
  await expect(readBack({ ...reader, password: "wrong" }, span, testRuntime(), signal)).rejects.toMatchObject({
    code: "SERVICE_REFUSED",
  });
  await service[Symbol.asyncDispose]();
  await expect(readBack(reader, span, testRuntime(), signal)).rejects.toMatchObject({ code: "SERVICE_UNREACHABLE" });
});
