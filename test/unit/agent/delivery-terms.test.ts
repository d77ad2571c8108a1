// Two agents of a cluster: one delivers the points of both, and the other one continues when its lease ends.
import { join } from "node:path";
import { expect, test } from "vitest";
import { followSignals } from "../../../src/agent/upkeep/cluster-delivery.ts";
import { openClusterTerm } from "../../../src/agent/upkeep/cluster-terms.ts";
import { startDelivery } from "../../../src/agent/upkeep/delivery.ts";
import { AgentError } from "../../../src/core/errors.ts";
import type { Sink } from "../../../src/core/sink.ts";
import { serviceOptions } from "../../../src/upload/client/options.ts";
import { openCatalog } from "../../../src/upload/signals/catalog.ts";
import { eventually } from "../../support/eventually.ts";
import { linkTo, memoryBucket } from "../../support/memory-bucket.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { append, memoryWorld } from "../../support/stream-world.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const never = new AbortController().signal;
const ttlMs = 6_000;
const options = serviceOptions.parse({
  url: "http://127.0.0.1:1/v1",
  integration: "c8ktonqsahsmemfs7lv0",
  auth: { basic: { password: "secret" } },
  signals: { save: "never", check: "off" },
});

test("one agent delivers for all until its term ends, then the next one does, at one common rate", async () => {
  using home = temporaryFolder();
  const clock = new ManualClock();
  const bucket = memoryBucket();
  const world = memoryWorld();
  using collecting = world.node("gw1");
  await using collector = await collecting.start();
  const sent: { readonly node: string; readonly at: number }[] = [];
  const cut = new Set<string>();
  await using opened = new AsyncDisposableStack();

  const { stream, state } = world;
  const terms = { stream, state, ttlMs, intervalMs: 1_000 };
  const drained = new Set<string>();

  async function agent(node: string) {
    const runtime = testRuntime({ clock });
    const dataDir = join(home.path, node);
    const catalog = opened.use(await openCatalog(join(home.path, `${node}.db`), runtime, never));
    const link = linkTo(bucket, () => cut.has(node));
    const sink: Sink = {
      async send({ inputs, points }, _signal, turn) {
        if (!turn?.start()) return { kind: "throttled", retryAfterMs: 0 };
        sent.push({ node, at: clock.monotonic() });
        stored += points;
        return { kind: "accepted", signals: new Map(inputs.map((input) => [input, `of ${input}` as never])) };
      },
      async [Symbol.asyncDispose]() {},
    };
    const delivery = startDelivery(
      {
        options,
        buffer: undefined as never, // unused: a cluster delivers from the stream
        catalog,
        dataDir,
        agent: "test",
        configured: () => true,
        sink,
        after: Promise.resolve(),
        lead: (signal) =>
          openClusterTerm({ ...terms, mayLead: () => !drained.has(node), node, leases: link }, runtime, signal),
      },
      runtime,
    );
    opened.use(delivery);
    return { node, delivery, runtime };
  }

  let time = 0;
  let stored = 0;
  const add = async () => {
    await append(collector, { "a.b": [[++time, time]] });
    await collector.forwarded();
  };
  const pass = async (done: () => boolean) =>
    await eventually(async () => {
      await clock.advance(200);
      return done();
    });

  const agents = [await agent("a"), await agent("b")];
  await add();
  await pass(() => stored === time);
  const first = sent[0]?.node ?? "";
  const delivering = () => agents.filter(({ delivery }) => delivery.status() !== undefined).map(({ node }) => node);
  expect(delivering()).toEqual([first]);
  cut.add(first);
  const cutAt = clock.monotonic();
  await add();
  await pass(() => stored === time);
  const next = sent.at(-1)!;
  expect(next.node).not.toBe(first);
  expect(delivering()).toEqual([next.node]);
  expect(next.at - cutAt).toBeLessThan(10_000);

  // The operator drains the agent that delivers.
  cut.clear();
  drained.add(next.node);
  await pass(() => !delivering().includes(next.node));
  await add();
  await pass(() => stored === time);
  expect(sent.at(-1)!.node).toBe(first);
  const gaps = sent.slice(1).map(({ at }, i) => at - sent[i]!.at);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000);
  for (const { runtime } of agents) expect(runtime.lines.filter(({ level }) => level === "error")).toEqual([]);
});

test("an agent that cannot begin its term lets another one deliver and tries again", async () => {
  using home = temporaryFolder();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  await using catalog = await openCatalog(join(home.path, "a.db"), runtime, never);
  let tries = 0;
  await using delivery = startDelivery(
    {
      options,
      buffer: undefined as never, // unused: a cluster delivers from the stream
      catalog,
      dataDir: home.path,
      agent: "test",
      configured: () => true,
      after: Promise.resolve(),
      lead: async () => {
        tries++;
        throw new AgentError("CLUSTER_UNREACHABLE", "no answer");
      },
    },
    runtime,
  );
  await eventually(async () => {
    await clock.advance(1_000);
    return tries > 2;
  });
  expect(delivery.outage).toBeUndefined();
  expect(runtime.lines.map(({ level }) => level)).not.toContain("error");
});

test("a term that ends while the metadata of the other agents is read is no failure", async () => {
  const term = new AbortController();
  const shared = { open: () => new Promise<never>(() => {}), refresh: async () => {} };
  const following = followSignals(shared, testRuntime(), term.signal);
  term.abort(new Error("the lease is over"));

  await expect(following.then((followed) => followed[Symbol.asyncDispose]())).resolves.toBeUndefined();
});
