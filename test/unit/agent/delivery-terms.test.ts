// Two agents of a cluster: one delivers what both have, and when its term is over the other one goes on.
import { join } from "node:path";
import { expect, test } from "vitest";
import { startDelivery } from "../../../src/agent/upkeep/delivery.ts";
import { acquireLease } from "../../../src/cluster/lease.ts";
import { leaseGate } from "../../../src/cluster/lease-gate.ts";
import type { BlockId } from "../../../src/core/block.ts";
import { AgentError } from "../../../src/core/errors.ts";
import type { InputId } from "../../../src/core/point.ts";
import type { Sink } from "../../../src/core/sink.ts";
import { serviceOptions } from "../../../src/upload/client/options.ts";
import { openCatalog } from "../../../src/upload/signals/catalog.ts";
import { eventually } from "../../support/eventually.ts";
import { memoryBucket, unreachable } from "../../support/memory-bucket.ts";
import { MemoryReader } from "../../support/memory-reader.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const never = new AbortController().signal;
const ttlMs = 6_000;
const options = serviceOptions.parse({
  url: "http://127.0.0.1:1/v1",
  integration: "c8ktonqsahsmemfs7lv0",
  auth: { basic: { password: "secret" } },
  signals: { save: "never", check: "off" },
});

/** The stream that the agents share: what a term leaves unsettled comes again in the next one. */
class SharedStream {
  readonly reader = new MemoryReader();

  openTerm(term: AbortSignal) {
    const { reader } = this;
    const out = new Set<BlockId>();
    return {
      take: async (...given: Parameters<MemoryReader["take"]>) => {
        const block = await reader.take(...given);
        if (block) out.add(block.id);
        return block;
      },
      settle: async (done: Parameters<MemoryReader["settle"]>[0]) => {
        // What the revision of the settled ranges does on the servers.
        if (term.aborted) throw new AgentError("CLUSTER_FENCED", "another agent has settled since");
        await reader.settle(done);
        for (const { block } of done) out.delete(block);
      },
      release(blocks: Parameters<MemoryReader["release"]>[0]) {
        for (const block of blocks) out.delete(block);
        reader.release(blocks);
      },
      async [Symbol.asyncDispose]() {
        reader.release([...out]);
      },
    };
  }
}

test("an agent delivers for all until its term is over, then the next one does, at one rate", async () => {
  using home = temporaryFolder();
  const clock = new ManualClock();
  const bucket = memoryBucket();
  const stream = new SharedStream();
  const sent: { readonly node: string; readonly at: number }[] = [];
  const cut = new Set<string>();
  await using opened = new AsyncDisposableStack();

  async function agent(node: string) {
    const runtime = testRuntime({ clock });
    const dataDir = join(home.path, node);
    const catalog = opened.use(await openCatalog(join(home.path, `${node}.db`), runtime, never));
    const reachable = () => {
      if (cut.has(node)) throw unreachable();
    };
    const link: typeof bucket = {
      ...bucket,
      get: async (key) => (reachable(), await bucket.get(key)),
      update: async (...given) => (reachable(), await bucket.update(...given)),
    };
    const sink: Sink = {
      async send({ inputs }, _signal, turn) {
        if (!turn?.start()) return { kind: "throttled", retryAfterMs: 0 };
        sent.push({ node, at: clock.monotonic() });
        return { kind: "accepted", signals: new Map(inputs.map((input) => [input, `of ${input}` as never])) };
      },
      async [Symbol.asyncDispose]() {},
    };
    const delivery = startDelivery(
      {
        options,
        buffer: undefined as never, // a cluster delivers from the stream
        catalog,
        dataDir,
        agent: "test",
        configured: () => true,
        sink,
        after: Promise.resolve(),
        async lead(signal) {
          const term = await acquireLease({ bucket: link, key: "delivery", node, ttlMs }, runtime, signal);
          const reader = stream.openTerm(term.signal);
          return {
            reader,
            gate: leaseGate(term, 1_000, clock),
            signal: term.signal,
            async [Symbol.asyncDispose]() {
              await reader[Symbol.asyncDispose]();
              await term.release();
            },
          };
        },
      },
      runtime,
    );
    opened.use(delivery);
    return { node, delivery, runtime };
  }

  let time = 0;
  const append = () => stream.reader.append({ ["a.b" as InputId]: [[++time, time]] });
  const pass = async (done: () => boolean) =>
    await eventually(async () => {
      await clock.advance(200);
      return done();
    });

  const agents = [await agent("a"), await agent("b")];
  append();
  await pass(() => stream.reader.empty);
  const first = sent[0]?.node ?? "";
  const delivering = () => agents.filter(({ delivery }) => delivery.status() !== undefined).map(({ node }) => node);
  expect(delivering()).toEqual([first]);
  cut.add(first);
  const cutAt = clock.monotonic();
  append();
  await pass(() => stream.reader.empty);
  const next = sent.at(-1)!;
  expect(next.node).not.toBe(first);
  expect(delivering()).toEqual([next.node]);
  expect(next.at - cutAt).toBeLessThan(10_000);
  const gaps = sent.slice(1).map(({ at }, i) => at - sent[i]!.at);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000);
  for (const { runtime } of agents) expect(runtime.lines.filter(({ level }) => level === "error")).toEqual([]);
});
