// The sources of an agent that other agents of its cluster can read, too.
import { expect, test } from "vitest";
import { ClusterSources } from "../../../src/agent/upkeep/cluster-sources.ts";
import { Membership } from "../../../src/cluster/membership.ts";
import { memoryBroadcast, memoryBucket, unreachable } from "../../support/memory-bucket.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { lineWith, Reading } from "../../support/shared-source.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test("a source that other agents may read from now on is restarted by a reload, not removed", async () => {
  using folder = temporaryFolder();
  const runtime = testRuntime();
  const [node, state] = ["gw1", memoryBucket()];
  const members = new Membership(
    { state, heartbeats: memoryBroadcast().linkTo(), node, report: () => ({ version: "1", ...sources.report }) },
    runtime,
  );
  const options = {
    node,
    ttlMs: 6_000,
    dataDir: folder.path,
    identity: "plant",
    onTakeover: () => {},
    handOver: async () => {},
  };
  const cluster = { leases: memoryBucket(), state, members };
  const reading = new Reading(async () => {});
  await using sources: ClusterSources = new ClusterSources({ ...options, cluster, sources: reading }, runtime);
  await sources.change([await lineWith("here")]);
  const changes = await sources.change([await lineWith("anywhere")]);

  expect(changes).toEqual({ started: [], restarted: ["line"], stopped: [], unchanged: [] });
  expect((await sources.change([])).stopped).toEqual(["line"]);
});

test("a source whose lease is lost while its files are fetched is not read", async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const [node, bucket, leases] = ["gw1", memoryBucket(), memoryBucket()];
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
  const members = new Membership(
    { state, heartbeats: memoryBroadcast().linkTo(), node, report: () => ({ version: "1", ...sources.report }) },
    runtime,
  );
  const reading = new Reading(async () => {});
  const options = { node, ttlMs: 6_000, dataDir: folder.path, identity: "plant" };
  const calls = { onTakeover: () => {}, handOver: async () => {} };
  const cluster = { leases, state, members };
  await using sources: ClusterSources = new ClusterSources(
    { ...options, ...calls, cluster, sources: reading },
    runtime,
  );
  const stop = new AbortController();
  const watching = members.run(stop.signal);
  await sources.change([await lineWith("anywhere")]);
  await clock.advance(30_000);
  await fetching.promise;
  leases.before = () => Promise.reject(unreachable());
  await clock.advance(7_000);
  fetched.resolve();
  await clock.advance(1_000);

  expect(runtime.lines.map(({ message }) => message)).not.toContain("this agent reads the source");
  expect(reading.running).toEqual([]);
  stop.abort(new Error("over"));
  await watching;
});
