// Commands on any machine get their turns from the agent that delivers. The service sees one rate, also while another
// agent takes over.
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { giveTurns } from "../../../src/agent/upkeep/cluster-terms.ts";
import type { RequestChannel } from "../../../src/cluster/connection/jetstream.ts";
import { acquireLease } from "../../../src/cluster/leases/lease.ts";
import { leaseGate, turnGate } from "../../../src/cluster/leases/request-gates.ts";
import type { RequestGate } from "../../../src/core/sink.ts";
import { Pacer, TurnFolder } from "../../../src/upload/client/pacer.ts";
import { eventually } from "../../support/eventually.ts";
import { linkTo, memoryBucket, unreachable } from "../../support/memory-bucket.ts";
import { seed } from "../../support/property.ts";
import { ManualClock, seeded, testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const method = "integration.saveSignals";

class Site implements Disposable {
  readonly clock = new ManualClock();
  readonly runtime = testRuntime({ clock: this.clock });
  readonly stop = new AbortController();
  readonly random: () => number;
  /** The times at which the service registered a request, and its sender. */
  readonly seen: { readonly at: number; readonly by: string }[] = [];
  /** Agents that cannot reach the servers of the lease. Commands still reach these agents. */
  readonly cut = new Set<string>();
  delivers = "";
  readonly #home = temporaryFolder();
  readonly bucket = memoryBucket();
  readonly #answerers = new Map<string, (data: Uint8Array) => Promise<Uint8Array>>();

  constructor(from: number) {
    this.random = seeded(from);
  }

  /** A request that may start. The service registers it some time after its first byte. */
  async send(by: string, mayStart: () => boolean): Promise<void> {
    const { clock, stop, random } = this;
    // The time to connect, or a suspension of the process.
    await clock.sleep(random() < 0.5 ? random() * 1_200 : 5, stop.signal);
    if (!mayStart()) return;
    await clock.sleep(random() < 0.3 ? random() * 490 : 5, stop.signal);
    this.seen.push({ at: clock.monotonic(), by });
    await clock.sleep(random() * 50, stop.signal);
  }

  channel(node: string): RequestChannel {
    return {
      ask: async (data) => {
        await this.clock.sleep(1 + this.random() * 30, this.stop.signal);
        const limit = this.clock.sleep(3_000, this.stop.signal).then(() => undefined);
        // A former leaseholder that has not noticed its loss answers as well.
        const answers = Array.from(this.#answerers.values(), (answer) => answer(data));
        const answer = await Promise.race([limit, Promise.any(answers).catch(() => limit)]);
        await this.clock.sleep(this.random() < 0.1 ? this.random() * 1_000 : 5, this.stop.signal);
        if (!answer) throw unreachable();
        return answer;
      },
      answer: async (reply, signal) => {
        this.#answerers.set(node, reply);
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        this.#answerers.delete(node);
      },
    };
  }

  /** An agent that also saves metadata itself whenever it is allowed to. */
  async agent(node: string): Promise<void> {
    const { clock, runtime, stop } = this;
    const stateDir = join(this.#home.path, node);
    const bucket = linkTo(this.bucket, () => this.cut.has(node));
    while (!stop.signal.aborted) {
      const term = await acquireLease(
        { bucket, key: "delivery", node, ttlMs: 6_000, ifMissing: "take" },
        runtime,
        stop.signal,
      );
      this.delivers = node;
      const ending = AbortSignal.any([stop.signal, term.signal]);
      const gate = leaseGate(term, 1_000, clock);
      using turns = new TurnFolder(stateDir, runtime.log);
      const pacer = new Pacer(clock, 1, turns.of(method), gate);
      const own = async () => {
        while (!ending.aborted) {
          await pacer.run((turn) => this.send(node, () => turn?.start() ?? false), ending).catch(() => {});
          await clock.sleep(this.random() * 5_000, ending).catch(() => {});
        }
      };
      const options = { channel: this.channel(node), gate, stateDir, requestsPerSecond: 1 };
      await Promise.all([own(), giveTurns(options, runtime, ending)]);
    }
  }

  async command(name: string, pause = 0): Promise<void> {
    const { clock, stop } = this;
    const gate = turnGate(method, this.channel(name), clock);
    const pacer = new Pacer(clock, 1, undefined, gate);
    while (!stop.signal.aborted) {
      await pacer.run((turn) => this.send(name, () => turn?.start() ?? false), stop.signal).catch(() => {});
      await clock.sleep(1 + this.random() * pause, stop.signal).catch(() => {});
    }
  }

  async pass(ms: number): Promise<void> {
    const end = this.clock.monotonic() + ms;
    while (this.clock.monotonic() < end) {
      await this.clock.advance(20);
      // Lets file operations finish, because turns are files.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  [Symbol.dispose](): void {
    this.stop.abort(new Error("stop"));
    this.#home[Symbol.dispose]();
  }
}

const spacings = ({ seen }: Site) =>
  seen
    .toSorted((a, b) => a.at - b.at)
    .slice(1)
    .map(({ at }, i) => at - seen.toSorted((a, b) => a.at - b.at)[i]!.at);

test.each([seed, seed + 1, seed + 2])("agents and commands keep one rate at takeovers (seed %i)", async (from) => {
  using site = new Site(from);
  const running = Promise.allSettled([
    site.agent("gw1"),
    site.agent("gw2"),
    site.command("a"),
    site.command("b", 3_000),
  ]);
  for (let round = 0; round < 3; round++) {
    await site.pass(15_000);
    const first = site.delivers;
    site.cut.add(first);
    await site.pass(15_000);
    // Turns are files, which take real time: on a loaded machine the clock of the test runs ahead of them.
    while (site.delivers === first) await site.pass(1_000);
    site.cut.delete(first);
    for (let i = 0; i < 6; i++) {
      // The clock of the server that leads the bucket is set forward, so the lease expires early.
      site.bucket.expire("delivery");
      await site.pass(5_000);
    }
  }
  // How many requests the rounds give depends on the speed of the disk.
  const sent = (by: string) => site.seen.filter((request) => request.by === by).length;
  while (!["a", "b", "gw1", "gw2"].every((by) => sent(by) > 1)) {
    site.bucket.expire("delivery");
    await site.pass(5_000);
  }
  expect(Math.min(...spacings(site))).toBeGreaterThanOrEqual(1_000);
  site.stop.abort(new Error("stop"));
  await running;
});

/** An agent that gives turns while `gate` lets it, and the answer to the question of a command. */
function turnsOf(gate: RequestGate) {
  const folder = temporaryFolder();
  const clock = new ManualClock();
  const stop = new AbortController();
  const reply = Promise.withResolvers<(data: Uint8Array) => Promise<Uint8Array>>();
  const channel: RequestChannel = {
    ask: () => Promise.reject(unreachable()),
    answer: async (answer, signal) => {
      reply.resolve(answer);
      await once(signal, "abort");
    },
  };
  const options = { channel, gate, stateDir: folder.path, requestsPerSecond: 1 };
  const given = giveTurns(options, testRuntime({ clock }), stop.signal);
  return {
    clock,
    /** Asks until the answer is another than to wait. */
    async ask(id: string): Promise<string> {
      const answer = await reply.promise;
      const data = Buffer.from(JSON.stringify({ id, method, done: false }));
      for (;;) {
        const said = Buffer.from(await answer(data)).toString("utf8");
        if (said !== "wait") return said;
        await clock.advance(10);
      }
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("stop"));
      // It has the files of the turns open until then.
      await given;
      folder[Symbol.dispose]();
    },
  };
}

const openGate: RequestGate = { isOpen: true, pass: async () => {} };

test("a command gets no turn from an agent that cannot renew its lease", async () => {
  await using turns = turnsOf({ ...openGate, pass: () => Promise.reject(unreachable()) });

  await expect(turns.ask("a")).rejects.toMatchObject({ code: "CLUSTER_UNREACHABLE" });
});

test("the next command waits until the service must have registered the request before it", async () => {
  await using turns = turnsOf(openGate);
  const first = { answer: await turns.ask("a"), at: turns.clock.monotonic() };
  const second = { answer: await turns.ask("b"), at: turns.clock.monotonic() };

  expect([first.answer, second.answer]).toEqual(["go", "go"]);
  // The first command may start until 700 ms after its question, its bytes take up to 500 ms, and then a second passes.
  expect(second.at - first.at).toBeGreaterThanOrEqual(700 + 500 + 1_000);
});

test("a command's request that would start more than 700 ms after its question is not sent", async () => {
  const clock = new ManualClock();
  const channel: RequestChannel = {
    ask: async () => {
      await clock.sleep(300, new AbortController().signal);
      return Buffer.from("go");
    },
    answer: () => Promise.reject(unreachable()),
  };
  const gate = turnGate(method, channel, clock);
  const passed = gate.pass(new AbortController().signal);
  await clock.advance(300);
  await passed;
  await clock.advance(399);
  const before = gate.isOpen;
  await clock.advance(1);

  expect({ before, after: gate.isOpen }).toEqual({ before: true, after: false });
});

test("without an agent that delivers, a command ends with the reason after 20 s", async () => {
  using site = new Site(1);
  await site.clock.advance(30_000);
  const began = site.clock.monotonic();
  const gate = turnGate(method, site.channel("a"), site.clock);
  let reason: unknown;
  void gate.pass(site.stop.signal).catch((error: unknown) => {
    reason = error;
  });
  await eventually(async () => {
    await site.clock.advance(1_000);
    return reason;
  });
  expect(reason).toMatchObject({ code: "CLUSTER_UNREACHABLE", message: expect.stringContaining("gives a turn") });
  const waitedMs = site.clock.monotonic() - began;
  expect(waitedMs).toBeGreaterThan(20_000);
  expect(waitedMs).toBeLessThan(27_000);
});
