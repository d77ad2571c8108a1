// The sources of an agent that other agents of its cluster can read, too.
import { expect, test } from "vitest";
import { ClusterSources } from "../../../src/agent/upkeep/cluster-sources.ts";
import { Membership } from "../../../src/cluster/membership.ts";
import { memoryBroadcast, memoryBucket } from "../../support/memory-bucket.ts";
import { testRuntime } from "../../support/runtime.ts";
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
