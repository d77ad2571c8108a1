// How the parts of the agent start and stop together.
import { expect, test } from "vitest";
import { openAgent } from "../../../src/agent/agent.ts";
import { openDiskBuffer } from "../../../src/buffer/disk/disk-buffer.ts";
import { workerPorts } from "../../../src/buffer/disk/worker/worker-port.ts";
import { epochMicros } from "../../../src/core/point.ts";
import type { Sink } from "../../../src/core/sink.ts";
import type { Source } from "../../../src/core/source.ts";
import { orAbort } from "../../../src/lib/flow/abort.ts";
import { systemClock } from "../../../src/lib/time/clock.ts";
import { head, load, withPassword } from "../../support/config.ts";
import { eventually } from "../../support/eventually.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test("the upload stops while a source takes its time to stop, not after it", async () => {
  using folder = temporaryFolder();
  const runtime = testRuntime();
  const uploads = Promise.withResolvers<void>();
  const uploadStopped = Promise.withResolvers<void>();
  const sink: Sink = {
    send: async () => ({ kind: "unavailable", cause: new Error("away") }),
    async [Symbol.asyncDispose]() {},
  };
  // Records when the uploader uses its reader, and when it closes it, which it does after it has stopped.
  const openBuffer: typeof openDiskBuffer = async (...parts) => {
    const buffer = await openDiskBuffer(...parts);
    const open = buffer.reader.bind(buffer);
    buffer.reader = async () => {
      const reader = await open();
      const take = reader.take.bind(reader);
      reader.take = (...given) => {
        uploads.resolve();
        return take(...given);
      };
      const close = reader[Symbol.asyncDispose].bind(reader);
      reader[Symbol.asyncDispose] = async () => {
        await close();
        uploadStopped.resolve();
      };
      return reader;
    };
    return buffer;
  };
  const slow: Source = {
    async *deliveries(signal) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      yield* [];
    },
    [Symbol.asyncDispose]: () => uploadStopped.promise,
  };
  const written = await load(`${head}sources: { waves: { type: simulator, tags: [{ input: sine }] } }\n`, withPassword);
  const config = {
    ...written,
    agent: { ...written.agent, dataDir: folder.path },
    sources: written.sources.map((source) => ({ ...source, driver: { ...source.driver, open: async () => slow } })),
  };

  {
    await using agent = await openAgent(
      config,
      { version: "0", sink, openBuffer },
      runtime,
      new AbortController().signal,
    );
    await eventually(() => agent.status().sources[0]?.state === "online");
    // Loading it takes seconds on a busy machine.
    await uploads.promise;
  }

  expect(runtime.lines.map(({ message }) => message)).not.toContain(
    "the source did not stop in time and is left behind",
  );
});

test("a source that hangs while it connects does not hold up the points of the others", async () => {
  using folder = temporaryFolder();
  let hasSent = false;
  const sink: Sink = {
    async send() {
      hasSent = true;
      return { kind: "unavailable", cause: new Error("away") };
    },
    async [Symbol.asyncDispose]() {},
  };
  const written = await load(
    `${head}sources: { waves: { type: simulator, tags: [{ input: sine }] }, hung: { type: simulator, tags: [{ input: cosine }] } }\n`,
    withPassword,
  );
  const open = (_: unknown, _runtime: unknown, signal: AbortSignal) => orAbort(new Promise<never>(() => {}), signal);
  const config = {
    ...written,
    agent: { ...written.agent, dataDir: folder.path },
    sources: written.sources.map((source) =>
      source.name === "hung" ? { ...source, driver: { ...source.driver, open } } : source,
    ),
  };

  await using _agent = await openAgent(config, { version: "0", sink }, testRuntime(), new AbortController().signal);
  await eventually(() => hasSent);
});

test("a disk that neither stores nor fails is reported unhealthy after a minute, and healthy again when it stores", async () => {
  using folder = temporaryFolder();
  let ahead = 0;
  const clock = systemClock();
  const runtime = testRuntime({ clock: { ...clock, monotonic: () => clock.monotonic() + ahead } });
  const hung = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const openBuffer: typeof openDiskBuffer = (options, given, signal) =>
    openDiskBuffer(options, given, signal, async (...start) => {
      const port = await workerPorts()(...start);
      const call = port.call.bind(port);
      port.call = async (request, transfer) => {
        if (request.kind === "append") {
          asked.resolve();
          await hung.promise;
        }
        return await call(request, transfer);
      };
      return port;
    });
  const config = await load(`${head}sources: { waves: { type: simulator, tags: [{ input: sine }] } }\n`, withPassword);
  const away: Sink = {
    send: async () => ({ kind: "unavailable", cause: new Error("away") }),
    async [Symbol.asyncDispose]() {},
  };
  await using agent = await openAgent(
    { ...config, agent: { ...config.agent, dataDir: folder.path } },
    { version: "0", openBuffer, sink: away },
    runtime,
    new AbortController().signal,
  );
  await asked.promise;
  expect(agent.health()).toEqual({ ok: true });
  ahead = 61_000;
  expect(agent.health()).toEqual({
    ok: false,
    reason: expect.stringMatching(/^points cannot be stored: the disk has not answered for \d+ s$/),
  });
  expect(
    agent
      .status()
      .warnings.map(({ message }) => message)
      .join(),
  ).toContain("the disk has not answered for ");
  hung.resolve();
  await eventually(() => agent.health().ok);
});

test("when one source cannot be started, the sources started before it are stopped", async () => {
  using folder = temporaryFolder();
  const written = await load(
    `${head}sources: { a: { type: simulator, tags: [{ input: sine }] }, b: { type: simulator, tags: [{ input: cosine }] } }\n`,
    withPassword,
  );
  const [first, second] = written.sources;
  if (!first || !second) throw new Error("two sources were written");
  let open = 0;
  let opened = 0;
  const driver = {
    ...first.driver,
    async open(): Promise<Source> {
      open++;
      opened++;
      return {
        async *deliveries(signal) {
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          yield* [];
        },
        async [Symbol.asyncDispose]() {
          open--;
        },
      };
    },
  };
  // Simulates a defect: the options of the source are missing.
  const broken = { ...second, options: undefined as unknown as typeof second.options };
  const opening = openAgent(
    { ...written, agent: { ...written.agent, dataDir: folder.path }, sources: [{ ...first, driver }, broken] },
    { version: "0" },
    testRuntime(),
    new AbortController().signal,
  );
  await expect(opening).rejects.toThrow(TypeError);
  expect({ open, opened }).toEqual({ open: 0, opened: 1 });
});

test("a source receives whether another connection will follow a reload, a removal, a stop and a permanent stop", async () => {
  using folder = temporaryFolder();
  const ends: string[] = [];
  /** Name, input, and the identity under which the device keeps state. */
  type Wanted = readonly (readonly [string, string, string])[];
  const withSources = async (...wanted: Wanted) => {
    const sources = wanted.map(([name, input]) => `${name}: { type: simulator, tags: [{ input: ${input} }] }`);
    const written = await load(`${head}sources: { ${sources.join()} }\n`, withPassword);
    return {
      ...written,
      agent: { ...written.agent, dataDir: folder.path },
      sources: written.sources.map((source, i) => ({
        ...source,
        driver: {
          ...source.driver,
          identity: () => String(wanted[i]?.[2]),
          open: async ({
            name,
            final,
          }: {
            readonly name: string;
            readonly final?: () => boolean;
          }): Promise<Source> => ({
            async *deliveries(signal) {
              await new Promise((resolve) => signal.addEventListener("abort", resolve));
              yield* [];
            },
            async [Symbol.asyncDispose]() {
              ends.push(`${name} ${final?.() ? "for good" : "for now"}`);
            },
          }),
        },
      })),
    };
  };
  let stopsForGood = false;
  {
    const runtime = testRuntime();
    const config = await withSources(["a", "one", "plc1"], ["b", "two", "plc2"]);
    const options = { version: "0", final: () => stopsForGood };
    await using agent = await openAgent(config, options, runtime, new AbortController().signal);
    const online = () => eventually(() => agent.status().sources.every(({ state }) => state === "online"));
    const change = async (...sources: Wanted) => {
      await online();
      await agent.reload(await withSources(...sources));
      return ends.splice(0).toSorted();
    };
    expect(await change(["a", "three", "plc1"], ["b", "four", "plc3"])).toEqual(["a for now", "b for good"]);
    expect(await change(["b", "four", "plc3"])).toEqual(["a for good"]);
    expect(await change(["b", "five", "plc3"])).toEqual(["b for now"]);
    await online();
    stopsForGood = true;
  }
  expect(ends).toEqual(["b for good"]);
});

test("a source that a reload renames, and a tag that it moves, have a gap of the time between", async () => {
  using folder = temporaryFolder();
  const withSources = async (...sources: readonly string[]) => {
    const written = await load(`${head}sources: { ${sources.join()} }\n`, withPassword);
    return { ...written, agent: { ...written.agent, dataDir: folder.path } };
  };
  const source = (name: string, ...inputs: readonly string[]) =>
    `${name}: { type: simulator, tags: [${inputs.map((input) => `{ input: ${input}, every: 50ms }`).join()}] }`;
  const before = await withSources(source("a", "one"), source("b", "two", "three"));
  await using agent = await openAgent(before, { version: "0" }, testRuntime(), new AbortController().signal);
  const read = () => eventually(() => agent.status().tags.every(({ value }) => value !== undefined));
  const causes = () => agent.gaps(60_000, 10).gaps.map((gap) => `${gap.source} ${gap.cause} ${gap.state}`);
  await read();
  await agent.reload(
    await withSources(source("renamed", "one"), source("b", "two"), source("c", "three"), source("d", "new")),
  );
  await read();
  expect(causes().toSorted()).toEqual(["b stopped lost", "c stopped lost", "renamed stopped lost"]);
});

function acceptingSink(): Sink & { readonly bodies: string } {
  let bodies = "";
  return {
    get bodies() {
      return bodies;
    },
    async send({ body }) {
      bodies += Buffer.from(body).toString("utf8");
      return { kind: "accepted", signals: new Map() };
    },
    async [Symbol.asyncDispose]() {},
  };
}

test("the agent's own signals are delivered like any tag, unless they are switched off", async () => {
  const delivered = async (own: string) => {
    using folder = temporaryFolder();
    const text = `${head}agent: { name: gw1, ownSignals: ${own} }\nsources: { waves: { type: simulator, tags: [{ input: sine }] } }\n`;
    const config = await load(text, withPassword);
    const service = acceptingSink();
    await using _agent = await openAgent(
      { ...config, agent: { ...config.agent, dataDir: folder.path } },
      { version: "0", sink: service },
      testRuntime(),
      new AbortController().signal,
    );
    const wanted = own === "off" ? '"sine"' : '"gw1/tagferry/source/waves/online"';
    await eventually(() => service.bodies.includes(wanted), 25_000);
    return service.bodies;
  };
  const [on, off] = await Promise.all([delivered("{ every: 1s }"), delivered("off")]);
  expect(on).toContain('"gw1/tagferry/buffer/bytes"');
  expect(off).not.toContain("/tagferry/");
});

test("an agent that starts in 1970 reports it, and delivers the values read meanwhile with the right times", async () => {
  using folder = temporaryFolder();
  const real = systemClock();
  let behind = real.now();
  const clock = { ...real, now: () => epochMicros(real.now() - behind) };
  const config = await load(
    `${head}sources: { waves: { type: simulator, every: 50ms, tags: [{ input: sine }] } }\n`,
    withPassword,
  );
  const service = acceptingSink();
  await using agent = await openAgent(
    { ...config, agent: { ...config.agent, dataDir: folder.path } },
    { version: "0", sink: service },
    testRuntime({ clock }),
    new AbortController().signal,
  );
  expect(agent.status().warnings[0]).toMatchObject({
    level: "error",
    message: expect.stringMatching(/^the clock is not set: it says 1970-01-01T/),
    remedy: expect.stringContaining("set the clock"),
  });
  await eventually(() => agent.status().sources[0]?.state === "online");
  expect(agent.status().sources[0]?.readings).toBe(0);
  behind = epochMicros(0);
  await eventually(() => service.bodies.includes('"sine"'), 25_000);
  expect(agent.status().warnings).toEqual([]);
  expect(service.bodies).not.toContain('"1970-');
});

test("a source that other agents may read is not started by a reload that adds the cluster, which needs a restart", async () => {
  using folder = temporaryFolder();
  const config = (text: string) =>
    load(
      `${head}agent: { name: gw1, dataDir: ${JSON.stringify(folder.path)}, ownSignals: off }\n${text}`,
      withPassword,
    );
  const source = (run: string) => `{ type: simulator, run: ${run}, tags: [{ input: ${run}, wave: sine }] }`;
  const sink: Sink = {
    send: async () => ({ kind: "unavailable", cause: new Error("away") }),
    async [Symbol.asyncDispose]() {},
  };
  const before = await config(`sources: { own: ${source("here")} }\n`);
  await using agent = await openAgent(before, { version: "0", sink }, testRuntime(), new AbortController().signal);
  const after = `cluster: { servers: [nats://a] }\nsources: { own: ${source("here")}, line: ${source("anywhere")} }\n`;
  const { needRestart, started } = await agent.reload(await config(after));

  expect([needRestart, started]).toEqual([["cluster"], []]);
  expect(agent.status().sources.map(({ name }) => name)).toEqual(["own"]);
});
