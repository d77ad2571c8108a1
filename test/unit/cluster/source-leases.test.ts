// Each source is read by exactly one agent. The reader changes within seconds, by preference and by command.
import { expect, test } from "vitest";
import { giveOrder, Membership, removeMember, takeBackOrder } from "../../../src/cluster/members/membership.ts";
import { holdDownMs } from "../../../src/cluster/members/placement.ts";
import { holdSource } from "../../../src/cluster/sources/source-leases.ts";
import { linkTo, memoryBroadcast, memoryBucket } from "../../support/memory-bucket.ts";
import { seed } from "../../support/property.ts";
import { ManualClock, seeded, testRuntime } from "../../support/runtime.ts";

const takeoverMs = 10_000;

class Site implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly leases = memoryBucket();
  readonly state = memoryBucket();
  readonly heartbeats = memoryBroadcast();
  /** Agents with an open connection to the device. */
  readonly reading = new Set<string>();
  readonly overlaps: string[] = [];
  /** The time that closing a connection takes. */
  stopMs = 300;
  readonly #agents = new Map<string, { readonly stop: AbortController; readonly ended: Promise<unknown> }>();
  readonly #cut = new Set<string>();

  start(node: string, isPreferring = false) {
    const runtime = testRuntime({ clock: this.clock });
    const stop = new AbortController();
    const isCut = () => this.#cut.has(node);
    const sources = ["line"];
    const report = () => ({
      version: "1",
      offers: sources,
      prefers: isPreferring ? sources : [],
      reads: this.reading.has(node) ? sources : [],
    });
    const view = new Membership(
      { state: linkTo(this.state, isCut), heartbeats: this.heartbeats.linkTo(isCut), node, report },
      runtime,
    );
    const options = {
      leases: linkTo(this.leases, isCut),
      node,
      ttlMs: 6_000,
      view,
      start: async () => {
        if (this.reading.size > 0) this.overlaps.push(`${node} with ${[...this.reading].join()}`);
        this.reading.add(node);
      },
      stop: async () => {
        await this.clock.sleep(this.stopMs, new AbortController().signal);
        this.reading.delete(node);
      },
    };
    const ended = Promise.all([view.run(stop.signal), holdSource("line", options, runtime, stop.signal)]);
    this.#agents.set(node, { stop, ended });
    return { view, runtime };
  }

  /** Cuts the agent's network to the servers. It still reaches the device. */
  cut(node: string): void {
    this.#cut.add(node);
  }
  restore(node: string): void {
    this.#cut.delete(node);
  }

  async end(node: string): Promise<void> {
    const agent = this.#agents.get(node);
    this.#agents.delete(node);
    agent?.stop.abort(new Error("the agent stops"));
    await this.clock.advance(this.stopMs + 1_000);
    await agent?.ended;
  }

  async pass(ms: number): Promise<readonly string[]> {
    await this.clock.advance(ms);
    return [...this.reading];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const node of this.#agents.keys()) await this.end(node);
    expect(this.overlaps).toEqual([]);
  }
}

/** Starts two agents. Resolves with the one that reads, and the other. */
async function startTwo(site: Site): Promise<readonly [reader: string, other: string]> {
  site.start("gw1");
  site.start("gw2");
  const [reader = ""] = await site.pass(takeoverMs);
  return [reader, reader === "gw1" ? "gw2" : "gw1"];
}

test("when the reader is cut off or stops, another agent reads within 10 s", async () => {
  await using site = new Site();
  const [first, other] = await startTwo(site);
  site.cut(first);
  expect(await site.pass(takeoverMs)).toEqual([other]);
  site.restore(first);
  expect(await site.pass(60_000)).toEqual([other]);
  await site.end(other);
  expect(await site.pass(5_000)).toEqual([first]);
});

test("no agent reads a source while none reaches a leader; one does when they reach it again", async () => {
  await using site = new Site();
  const nodes = ["gw1", "gw2"];
  for (const node of nodes) site.start(node);
  expect(await site.pass(takeoverMs)).toHaveLength(1);
  for (const node of nodes) site.cut(node);
  expect(await site.pass(takeoverMs)).toEqual([]);
  for (const node of nodes) site.restore(node);
  expect(await site.pass(takeoverMs)).toHaveLength(1);
});

test("a lease that the servers let expire early has one reader all the same", async () => {
  await using site = new Site();
  site.start("gw1");
  site.start("gw2");
  for (let offset = 0; offset < 2_000; offset += 200) {
    expect(await site.pass(takeoverMs + offset)).toHaveLength(1);
    site.leases.expire("source.line");
  }
});

test("servers that have lost the lease of a reader that does not reach them give it to another one when its term is over", async () => {
  await using site = new Site();
  const [first, other] = await startTwo(site);
  site.cut(first);
  site.leases.wipe();
  expect(await site.pass(takeoverMs)).toEqual([other]);
});

test("a source returns to its preferred agent once that has run for the hold-down", async () => {
  await using site = new Site();
  site.start("gw1", true);
  site.start("gw2");
  expect(await site.pass(takeoverMs)).toEqual(["gw1"]);
  await site.end("gw1");
  expect(await site.pass(takeoverMs)).toEqual(["gw2"]);
  site.start("gw1", true);
  expect(await site.pass(holdDownMs - 10_000)).toEqual(["gw2"]);
  expect(await site.pass(20_000)).toEqual(["gw1"]);
});

test("moves and drains persist over restarts of the agents", async () => {
  await using site = new Site();
  site.stopMs = 4_000;
  site.start("gw1", true);
  site.start("gw2");
  await site.pass(takeoverMs);
  await giveOrder(site.state, { kind: "move", source: "line", node: "gw2" });
  expect(await site.pass(takeoverMs + site.stopMs)).toEqual(["gw2"]);
  await giveOrder(site.state, { kind: "drain", node: "gw2" });
  expect(await site.pass(takeoverMs + site.stopMs)).toEqual(["gw1"]);
  await site.end("gw2");
  site.start("gw2");
  await site.end("gw1");
  // All agents that could read the source are drained; one of them reads it nevertheless.
  expect(await site.pass(takeoverMs + site.stopMs)).toEqual(["gw2"]);
  expect(await takeBackOrder(site.state, { kind: "drain", node: "gw2" })).toBe(true);
  expect(await takeBackOrder(site.state, { kind: "drain", node: "gw2" })).toBe(false);
});

test("silent members are reported as gone, and removed by name", async () => {
  await using site = new Site();
  const { view } = site.start("gw1");
  site.start("gw.2");
  await site.pass(5_000);
  const alive = () => view.members.flatMap(({ node, aliveMs }) => (aliveMs === undefined ? [] : [node]));
  expect(alive()).toEqual(["gw1", "gw.2"]);
  await site.end("gw.2");
  await site.pass(takeoverMs);
  expect(alive()).toEqual(["gw1"]);
  expect(view.members).toHaveLength(2);
  expect(await removeMember(site.state, "gw.2")).toBe(true);
  await site.pass(takeoverMs);
  expect(view.members).toHaveLength(1);
});

test("two agents with the same name are reported, a restarted agent is not", async () => {
  await using site = new Site();
  const first = site.start("gw1");
  await site.pass(5_000);
  await site.end("gw1");
  const second = site.start("gw1");
  await site.pass(takeoverMs);
  expect([first.view.hasNamesake, second.view.hasNamesake]).toEqual([false, false]);
  const clone = new Membership(
    {
      state: site.state,
      heartbeats: site.heartbeats.linkTo(),
      node: "gw1",
      report: () => ({ version: "1", offers: [], prefers: [], reads: [] }),
    },
    testRuntime({ clock: site.clock }),
  );
  const stop = new AbortController();
  const ended = clone.run(stop.signal);
  await site.pass(takeoverMs);
  expect(second.view.hasNamesake).toBe(true);
  stop.abort(new Error("the end"));
  await ended;
});

test("heartbeats of a killed agent that arrive after its restart are not those of another agent", async () => {
  await using site = new Site();
  const late: Uint8Array[] = [];
  const stop = new AbortController();
  const listening = site.heartbeats.linkTo().listen((heartbeat) => late.push(heartbeat), stop.signal);
  site.start("gw1");
  await site.pass(5_000);
  await site.end("gw1");
  stop.abort();
  await listening;
  const { view } = site.start("gw1");
  await site.pass(takeoverMs);
  for (const heartbeat of late) {
    site.heartbeats.linkTo().send(heartbeat);
    await site.pass(takeoverMs);
  }

  expect(late.length).toBeGreaterThan(1);
  expect(view.hasNamesake).toBe(false);
});

test(`no two agents read a source at once, whatever is partitioned, stopped and moved (seed ${seed})`, async () => {
  await using site = new Site();
  const random = seeded(seed);
  const nodes = ["gw1", "gw2", "gw3"];
  for (const node of nodes) site.start(node, node === "gw1");
  for (let step = 0; step < 60; step++) {
    const node = nodes[Math.floor(random() * nodes.length)]!;
    const order =
      random() < 0.5 ? ({ kind: "drain", node } as const) : ({ kind: "move", source: "line", node } as const);
    const chance = random();
    if (chance < 0.25) site.cut(node);
    else if (chance < 0.5) site.restore(node);
    else if (chance < 0.6) {
      await site.end(node);
      site.start(node, node === "gw1");
    } else if (chance < 0.7) site.leases.expire("source.line");
    else if (chance < 0.85) await giveOrder(site.state, order);
    else await takeBackOrder(site.state, order);
    await site.pass(random() * 12_000);
  }
  for (const node of nodes) site.restore(node);
  expect(await site.pass(30_000)).toHaveLength(1);
});
