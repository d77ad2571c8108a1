// The buffer on disk, as the agent sees it: groups points, sends them to the log thread, and waits for blocks.
import type { AppendOptions, BufferReader, BufferStats, PointBuffer } from "../../core/buffer.ts";
import { AgentError } from "../../core/errors.ts";
import type { InputId, Point, PointBatch } from "../../core/point.ts";
import { checkGridMs, type MetricDeclaration, type Metrics, type Runtime } from "../../core/runtime.ts";
import { orAbort } from "../../lib/flow/abort.ts";
import { lossReasons } from "./counters/point-counters.ts";
import { InputTable } from "./format/input-table.ts";
import type { BufferOptions } from "./options.ts";
import { DiskReader } from "./worker/disk-reader.ts";
import { closedError, GroupCommit } from "./worker/group-commit.ts";
import { type BareRequest, type OpenPort, type StoreReply, workerPorts } from "./worker/worker-port.ts";

export interface DiskBufferOptions {
  /** Folder for this buffer only. Created with mode 0700, including its parents, if it does not exist. */
  readonly directory: string;
  /** Integration ID of points appended from now on. */
  readonly integration: string;
  readonly config: BufferOptions;
  /** Size of a segment file. Undefined: derived from `maxSize`. */
  readonly segmentBytes?: number;
  /** Maximum bytes of a request to the service: the buffer avoids records that exceed it. Undefined: no limit. */
  readonly requestBytes?: number | undefined;
}

const tickMs = 2_000;
/** A write that takes longer than this counts as hung: slow disks were seen to take 30 s. */
const hungAfterMs = 60_000;
/** A background step takes about 10 ms of the log thread: at most a tenth of a core. */
const workEveryMs = 100;

/** Delays for `ackDelay: auto`; `hurryMs` applies to deliveries with `hurry`. */
const autoAckDelay = { ms: 5, hurryMs: 50 };

/** Request bytes per point of a series sent alone: a time of 27 bytes and a value. Shared times need less. */
const bytesPerPoint = 32;

/**
 * Resolves when the buffer can be appended to and read; the time does not depend on its content. Rejects with
 * `DATA_DIR_IN_USE`, `DATA_DIR_UNWRITABLE`, `BUFFER_NEWER`, `BUFFER_OLDER`, or with `signal.reason`. Damaged data is
 * quarantined and does not prevent opening. `openPort` starts the log; tests run it without a thread.
 */
export async function openDiskBuffer(
  { directory, integration, config, segmentBytes, requestBytes }: DiskBufferOptions,
  runtime: Runtime,
  signal: AbortSignal,
  openPort: OpenPort = workerPorts(),
): Promise<PointBuffer> {
  signal.throwIfAborted();
  const options = {
    folder: directory,
    integration,
    maxSize: config.maxSize,
    maxAgeMs: config.maxAge,
    reserveFreeDisk: config.reserveFreeDisk,
    whenFull: config.whenFull,
    segmentBytes: segmentBytes ?? Math.min(8 * 2 ** 20, Math.max(2 * 2 ** 20, config.maxSize / 64)),
    coldPoints: requestBytes === undefined ? undefined : Math.floor(requestBytes / bytesPerPoint),
  };
  let again = false;
  const open = async (stop: AbortSignal) => {
    const port = await openPort({ options, now: timestamps(runtime), again }, stop);
    const { error, notes } = port.opened;
    for (const note of notes) runtime.log[note.level](note.fields, note.message);
    if (!error) {
      again = true;
      return port;
    }
    await port[Symbol.asyncDispose]();
    throw toError(error);
  };
  let port = await open(signal);
  const closing = new AbortController();
  let inputs = new InputTable();
  let opened: DiskReader | undefined;
  let current: BufferStats = statsOf(port.opened);
  learn(port.opened.newInputs);
  const metrics = new BufferMetrics(runtime.metrics);
  metrics.update(current);
  const commit = new GroupCommit({
    clock: runtime.clock,
    ackDelayMs: config.ackDelay === "auto" ? autoAckDelay.ms : config.ackDelay,
    hurryDelayMs: config.ackDelay === "auto" ? autoAckDelay.hurryMs : config.ackDelay,
    syncMs: config.sync,
    send: async (group, newInputs) => {
      await call({ kind: "append", newInputs, group }, [group.times.buffer]);
      opened?.wake();
    },
  });
  const ticking = tick();

  async function tick(): Promise<void> {
    const { signal: stop } = closing;
    const { clock, log } = runtime;
    let more = false;
    let ticked = clock.monotonic();
    while (!stop.aborted)
      try {
        await (more ? clock.sleep(workEveryMs, stop) : clock.sleep(tickMs, stop, checkGridMs));
        const isCheck = !more;
        more = false;
        if (port.failure) await reopen(port.failure, stop);
        if (isCheck || clock.monotonic() - ticked >= tickMs) {
          ticked = clock.monotonic();
          const reply = await call({ kind: "tick" }, []);
          // An unreadable segment may be readable again, and no other event reports it.
          if (reply.unread) opened?.wake();
          metrics.update(current);
          more = reply.more;
        } else ({ more } = await call({ kind: "work" }, []));
      } catch (error) {
        if (!stop.aborted) log.error({ part: "buffer", err: String(error) }, "buffer maintenance failed");
      }
  }

  /** The thread has died, perhaps for lack of memory. Leased points are leased again; no durable point is lost. */
  async function reopen(failure: AgentError, stop: AbortSignal): Promise<void> {
    current = { ...current, degraded: failure.message };
    await port[Symbol.asyncDispose]();
    try {
      port = await open(stop);
    } catch (error) {
      if (error instanceof Error && !stop.aborted) current = { ...current, degraded: error.message };
      throw error;
    }
    inputs = new InputTable();
    learn(port.opened.newInputs);
    current = statsOf(port.opened);
    commit.forgetSent();
    const foreign = foreignError();
    if (foreign) opened?.revoke(foreign);
    opened?.wake();
    runtime.log.error({ part: "buffer", err: failure.message }, "the log thread had to be started again");
  }

  async function call(request: BareRequest, transfer: readonly ArrayBuffer[]): Promise<StoreReply> {
    const reply = await port.call({ ...request, now: timestamps(runtime) }, transfer);
    const { degraded } = current;
    if (reply.stats) current = reply.stats;
    learn(reply.newInputs);
    // Segments that could not be read may be readable again.
    if (degraded !== undefined && current.degraded === undefined) opened?.wake();
    for (const { level, fields, message } of reply.notes) runtime.log[level](fields, message);
    if (reply.error) throw toError(reply.error);
    return reply;
  }

  function foreignError(): AgentError | undefined {
    const { foreign } = port.opened;
    return foreign === undefined
      ? undefined
      : new AgentError("BUFFER_FOREIGN", `the backlog in ${directory} belongs to integration ${foreign}`);
  }

  function learn(newInputs: readonly InputId[]): void {
    for (const input of newInputs) inputs.numberOf(input);
  }

  return {
    append(points: readonly Point[] | PointBatch, terms: AppendOptions, stop: AbortSignal): Promise<void> {
      if (stop.aborted) return Promise.reject(stop.reason);
      if (closing.signal.aborted) return Promise.reject(closedError());
      try {
        return orAbort(commit.append(points, terms), stop);
      } catch (error) {
        return Promise.reject(error);
      }
    },
    reader(): Promise<BufferReader> {
      const foreign = foreignError();
      if (foreign) return Promise.reject(foreign);
      if (closing.signal.aborted) return Promise.reject(closedError());
      if (opened) return Promise.reject(new Error("the buffer has one reader, and it is open"));
      opened = new DiskReader({
        call: (request) => call(request, []),
        inputs: () => inputs,
        onDispose: () => {
          opened = undefined;
        },
      });
      return Promise.resolve(opened);
    },
    stats(): BufferStats {
      const { unansweredMs: ms } = commit;
      if (ms < hungAfterMs) return current;
      return { ...current, degraded: `the disk has not answered for ${Math.round(ms / 1_000)} s` };
    },
    async [Symbol.asyncDispose](): Promise<void> {
      if (closing.signal.aborted) return;
      closing.abort(closedError());
      await commit.flush();
      await opened?.[Symbol.asyncDispose]();
      await ticking;
      try {
        await call({ kind: "close" }, []);
      } catch (error) {
        runtime.log.warn({ part: "buffer", err: String(error) }, "the buffer could not be closed in order");
      }
      metrics.update(current);
      await port[Symbol.asyncDispose]();
    },
  };
}

const timestamps = ({ clock }: Runtime) => ({ wall: clock.now(), monotonic: clock.monotonic() });

function toError({ code, message, hint }: NonNullable<StoreReply["error"]>): Error {
  return code === "bug" ? new Error(message) : new AgentError(code, message, { hint });
}

/** A reply to a successful open always has counts. */
function statsOf({ stats }: StoreReply): BufferStats {
  if (!stats) throw new Error("the log thread opened a buffer without counts");
  return stats;
}

const counted = {
  appendedPoints: { name: "buffer_appended_points_total", help: "Points written to disk" },
  settledPoints: { name: "buffer_settled_points_total", help: "Points that the service has" },
  refusedPoints: { name: "buffer_refused_points_total", help: "Points that the service refused for good" },
  duplicatePoints: { name: "buffer_duplicate_points_total", help: "Points that came again and were stored once" },
  collidedPoints: {
    name: "buffer_collided_points_total",
    help: "Points whose time held another value: they replace it, or are shifted by 1 µs with sameTime: keep",
  },
} as const satisfies Record<string, MetricDeclaration>;
const measured = {
  bytes: { name: "buffer_size_bytes", help: "Bytes of the segments on disk" },
  segments: { name: "buffer_segments", help: "Segments on disk" },
  unsettledPoints: { name: "buffer_unsettled_points", help: "Points not delivered yet" },
} as const satisfies Record<string, MetricDeclaration>;
const lost = {
  name: "buffer_lost_points_total",
  help: "Points that will never be delivered, since the buffer was created",
  labels: ["reason"],
} as const satisfies MetricDeclaration<"reason">;

/**
 * Updates the metrics from successive snapshots of the counters. Losses count from the creation of the buffer, across
 * restarts. Losses found at startup therefore appear as an increase since the last scrape before it.
 */
export class BufferMetrics {
  readonly #metrics: Metrics;
  readonly #before = new Map<string, number>();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
    // A series must exist at 0, or `increase()` misses the first step.
    for (const declaration of Object.values(counted)) metrics.counter(declaration).add(0);
    for (const reason of lossReasons) {
      metrics.counter(lost).add(0, { reason });
      this.#before.set(`lost ${reason}`, 0);
    }
  }

  update(stats: BufferStats): void {
    for (const key of keysOf(counted)) this.#metrics.counter(counted[key]).add(this.#since(key, stats[key]));
    for (const { reason, points } of stats.losses)
      this.#metrics.counter(lost).add(this.#since(`lost ${reason}`, points), { reason });
    for (const key of keysOf(measured)) this.#metrics.gauge(measured[key]).set(stats[key]);
  }

  #since(key: string, value: number): number {
    const before = this.#before.get(key) ?? value;
    this.#before.set(key, value);
    return Math.max(0, value - before);
  }
}

function keysOf<Key extends string>(record: Readonly<Record<Key, unknown>>): readonly Key[] {
  return Object.keys(record) as Key[]; // the object has no other keys
}
