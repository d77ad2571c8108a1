// An answer that repeats the previous one except for the request ID is not parsed. Every other answer is.
import { expect, test } from "vitest";
import type { InputId, SignalId } from "../../../src/core/point.ts";
import type { Outcome } from "../../../src/core/sink.ts";
import { systemClock } from "../../../src/lib/time/clock.ts";
import { openCredentials } from "../../../src/upload/client/credentials.ts";
import { serviceOptions } from "../../../src/upload/client/options.ts";
import { openRpcClient } from "../../../src/upload/client/rpc-client.ts";
import { serviceSink } from "../../../src/upload/client/service-sink.ts";
import { testRuntime } from "../../support/runtime.ts";
import { answers, ScriptedService } from "../../support/scripted-service.ts";
import { integration, password } from "../../support/service.ts";

const { signal } = new AbortController();
const inputs = ["a", "b", "c"] as InputId[];
const answer = (id: number | string, ids: Record<string, string> = { a: "sa", b: "sb", c: "sc" }) =>
  `{"jsonrpc":"2.0","id":${id},"result":{"signalsByInput":{${Object.entries(ids)
    .map(([input, of]) => `"${input}":{"id":"${of}","created":false}`)
    .join(",")}}}}`;

/** Sends requests to a scripted service, and counts the Signal IDs that the sink compared with the known ones. */
async function exchanges() {
  const service = await ScriptedService.open();
  const options = serviceOptions.parse({ url: service.url, integration, auth: { basic: { password } } });
  const runtime = testRuntime({ clock: systemClock() });
  const credentials = await openCredentials(options, "/nowhere/token.json", runtime);
  const client = await openRpcClient({ options, credentials, agent: "tagferry/test" }, runtime);
  let compared = 0;
  const known = {
    revision: 0,
    ids: new Map(inputs.map((input) => [input, `s${input}`])),
    hasId(input: InputId, id: SignalId) {
      compared++;
      return known.ids.get(input) === id;
    },
  };
  const sinks = { one: serviceSink(client, "named", known), fresh: () => serviceSink(client, "named", known) };
  return {
    known,
    /** The outcome of the sink, and whether it parsed the answer. */
    async send(id: number, text: string, names = inputs): Promise<{ outcome: Outcome; isRead: boolean }> {
      const frame = {
        id,
        body: Buffer.from(`{"id":${id},"method":"integration.insert","params":{}}`),
        points: 1,
        inputs: names,
      };
      service.otherwise = answers(200, text);
      const before = compared;
      const outcome = await sinks.one.send(frame, signal);
      const isRead = compared > before;
      // The result must equal that of a sink without an earlier answer.
      expect(outcome).toEqual(await sinks.fresh().send(frame, signal));
      return { outcome, isRead };
    },
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await credentials[Symbol.asyncDispose]();
      await service[Symbol.asyncDispose]();
    },
  };
}

test("an answer is read once while only the request ID changes, wherever the ID stands", async () => {
  await using service = await exchanges();
  expect(await service.send(1_000_000_000, answer(1_000_000_000))).toMatchObject({ isRead: true });
  expect(await service.send(1_000_000_001, answer(1_000_000_001))).toMatchObject({ isRead: false });
  expect(await service.send(1_000_000_002, answer(1_000_000_002), [...inputs])).toMatchObject({ isRead: false });

  const idLast = (id: number) => answer(id).replace(`"id":${id},`, "").replace(/}$/, `,"id":${id}}\n`);
  expect(await service.send(1_000_000_003, idLast(1_000_000_003))).toMatchObject({ isRead: true });
  expect(await service.send(1_000_000_004, idLast(1_000_000_004))).toMatchObject({ isRead: false });
});

test.for<[what: string, text: string, kind: Outcome["kind"], names?: string[]]>([
  ["another signal", answer(7_000_000_001, { a: "sa", b: "sx", c: "sc" }), "accepted"],
  ["one input less", answer(7_000_000_001, { a: "sa", c: "sc" }), "partial"],
  ["one input renamed in the same length", answer(7_000_000_001, { a: "sa", x: "sb", c: "sc" }), "partial"],
  ["another order", answer(7_000_000_001, { b: "sb", a: "sa", c: "sc" }), "accepted"],
  ["the ID of another request", answer(7_000_000_002), "unavailable"],
  ["the ID of the request before", answer(7_000_000_000), "unavailable"],
  ["the ID as text", answer('"7000000001"'), "unavailable"],
  ["an ID that begins alike", answer(70_000_000_010), "unavailable"],
  ["an error", '{"jsonrpc":"2.0","id":7000000001,"error":{"code":-32015,"message":"again"}}', "throttled"],
  ["a broken end", `${answer(7_000_000_001).slice(0, -1)}]`, "unavailable"],
  ["the same for more inputs", answer(7_000_000_001), "partial", ["a", "b", "c", "d"]],
  ["the same for other inputs", answer(7_000_000_001), "partial", ["a", "b", "d"]],
])("an answer with %s is read", async ([, text, kind, names = inputs]) => {
  await using service = await exchanges();
  await service.send(7_000_000_000, answer(7_000_000_000));
  const { outcome } = await service.send(7_000_000_001, text, names as InputId[]);
  expect(outcome.kind).toBe(kind);
  if (text.includes("sx")) expect(outcome).toMatchObject({ signals: new Map([["b", "sx"]]) });
  // An answer that was not accepted does not replace the remembered one.
  expect(await service.send(7_000_000_003, answer(7_000_000_003))).toMatchObject({ outcome: { kind: "accepted" } });
});

test("an answer is read again after the known signals changed", async () => {
  await using service = await exchanges();
  await service.send(1_000_000_000, answer(1_000_000_000));
  service.known.ids.set("b" as InputId, "other");
  service.known.revision++;
  expect(await service.send(1_000_000_001, answer(1_000_000_001))).toMatchObject({
    isRead: true,
    outcome: { signals: new Map([["b", "sb"]]) },
  });
});

test("an answer whose request ID stands in it twice is read each time", async () => {
  await using service = await exchanges();
  const twice = (id: number) => answer(id, { a: "sa", b: "sb", c: "sc", [String(id)]: "s" });
  expect(await service.send(1_000_000_000, twice(1_000_000_000))).toMatchObject({ isRead: true });
  expect(await service.send(1_000_000_001, twice(1_000_000_001))).toMatchObject({ isRead: true });
});

test("requests for a few inputs in between, each time others, do not displace the answer for all", async () => {
  await using service = await exchanges();
  await service.send(1_000_000_000, answer(1_000_000_000));
  for (const [i, input] of inputs.entries()) {
    const few = 1_000_000_001 + 2 * i;
    await service.send(few, answer(few, { [input]: `s${input}` }), [input]);
    expect(await service.send(few + 1, answer(few + 1))).toMatchObject({ isRead: false });
  }
});
