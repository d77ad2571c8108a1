// The sources of an agent that other agents of its cluster can read, too.
import { expect, test } from "vitest";
import { type ClusterSources, clusterSources } from "../../../src/agent/upkeep/cluster-sources.ts";
import { keyToken } from "../../../src/cluster/connection/jetstream.ts";
import { holderOf } from "../../../src/cluster/leases/lease.ts";
import { Membership } from "../../../src/cluster/members/membership.ts";
import { sourceLease } from "../../../src/cluster/sources/source-leases.ts";
import { eventually } from "../../support/eventually.ts";
import { memoryBroadcast, memoryBucket, unreachable } from "../../support/memory-bucket.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { lineWith, Reading } from "../../support/shared-source.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** The agent gw1, alone in its cluster, with a clock that the test advances. */
function agent({ state = memoryBucket(), handOver = async () => {}, begins = async () => {} } = {}) {
  const folder = temporaryFolder();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const leases = memoryBucket();
  const reading = new Reading(begins);
  const node = "gw1";
  const members = new Membership(
    { state, heartbeats: memoryBroadcast().linkTo(), node, report: () => ({ version: "1", ...sources.report }) },
    runtime,
  );
  const calls = { onTakeover: () => {}, handOver };
  const sources: ClusterSources = clusterSources(
    {
      cluster: { leases, state, members },
      node,
      ttlMs: 6_000,
      dataDir: folder.path,
      identity: "plant",
      sources: reading,
      ...calls,
    },
    runtime,
  );
  const stop = new AbortController();
  const watching = members.run(stop.signal);
  return {
    clock,
    runtime,
    leases,
    reading,
    sources,
    async [Symbol.asyncDispose]() {
      await sources[Symbol.asyncDispose]();
      stop.abort(new Error("over"));
      await watching;
      folder[Symbol.dispose]();
    },
  };
}

test("a source that other agents may read from now on is restarted by a reload, not removed", async () => {
  await using gw1 = agent();
  const { sources } = gw1;
  await sources.change([await lineWith("here")]);
  const changes = await sources.change([await lineWith("anywhere")]);

  expect(changes).toEqual({ started: [], restarted: ["line"], stopped: [], unchanged: [] });
  expect((await sources.change([])).stopped).toEqual(["line"]);
});

test("a source whose lease is lost while its files are fetched is not read", async () => {
  const bucket = memoryBucket();
  const fetching = Promise.withResolvers<void>();
  const fetched = Promise.withResolvers<void>();
  const state = {
    ...bucket,
    async list(prefix: string) {
      if (!prefix.startsWith("files.")) return await bucket.list(prefix);
      fetching.resolve();
      await fetched.promise;
      return [];
    },
  };
  await using gw1 = agent({ state });
  const { clock, leases } = gw1;
  await gw1.sources.change([await lineWith("anywhere")]);
  await clock.advance(30_000);
  await fetching.promise;
  leases.before = () => Promise.reject(unreachable());
  await clock.advance(7_000);
  fetched.resolve();
  await clock.advance(1_000);

  expect(gw1.runtime.lines.map(({ message }) => message)).not.toContain("this agent reads the source");
  expect(gw1.reading.running).toEqual([]);
});

test("an agent that stops hands over what it has read while no other agent can read the source", async () => {
  const seen: unknown[] = [];
  const handOver = async () => void seen.push({ reads: gw1.reading.running.length, holder: await holder() });
  const holder = async () => holderOf((await gw1.leases.get(sourceLease("line")))!).node;
  await using gw1 = agent({ handOver });
  await gw1.sources.change([await lineWith("anywhere")]);
  await gw1.clock.advance(30_000);
  await eventually(() => gw1.reading.running.length === 1);

  await gw1.sources[Symbol.asyncDispose]();

  expect(seen).toEqual([{ reads: 0, holder: "gw1" }]);
  expect(await holder()).toBeUndefined();
});

test.each([
  { reader: "the first reader", former: undefined, upTo: expect.any(Number) },
  {
    reader: "a reader that took over",
    former: { node: "gw0", upTo: 1_767_225_600_000_000 },
    upTo: 1_767_225_600_000_000,
  },
])("the next agent knows of $reader that lost the servers as soon as it had begun", async ({ former, upTo }) => {
  const state = memoryBucket();
  if (former) await state.create(`source.${keyToken("line")}`, Buffer.from(JSON.stringify(former)));
  const begins = async () => {
    state.before = () => Promise.reject(unreachable());
  };
  await using gw1 = agent({ state, begins });
  await gw1.sources.change([await lineWith("anywhere")]);
  await gw1.clock.advance(30_000);
  await eventually(() => gw1.reading.running.length === 1);

  state.before = () => {};
  expect((await state.list("source.")).map(({ value }) => JSON.parse(String(Buffer.from(value))))).toEqual([
    { node: "gw1", upTo },
  ]);
});
