// The buffer on disk, as the agent sees it: groups points, sends them to the log thread, and waits for blocks.
import type { AppendOptions, BufferReader, BufferStats, PointBuffer } from "../../core/buffer.ts";
import { AgentError } from "../../core/errors.ts";
import type { InputId, Point, PointBatch } from "../../core/point.ts";
import { checkGridMs, type Runtime } from "../../core/runtime.ts";
import { orAbort } from "../../lib/flow/abort.ts";
import { BufferMetrics } from "./buffer-metrics.ts";
import { InputTable } from "./format/input-table.ts";
import type { BufferOptions } from "./options.ts";
import { DiskReader } from "./worker/disk-reader.ts";
import { closedError, GroupCommit } from "./worker/group-commit.ts";
import type { BareRequest, StorePort, StoreReply, StoreStart } from "./worker/protocol.ts";
import { openWorkerPort } from "./worker/worker-port.ts";

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

export type OpenPort = (start: StoreStart, signal: AbortSignal) => Promise<StorePort>;

const tickMs = 2_000;
/** A background step takes about 10 ms of the log thread: at most a tenth of a core. */
const workEveryMs = 100;

/** Delays for `ackDelay: auto`; `hurryMs` applies to deliveries with `hurry`. */
const autoAckDelay = { ms: 5, hurryMs: 50 };

/** Request bytes per point of a series sent alone: a time of 27 bytes and a value. Shared times need less. */
const bytesPerPoint = 32;

/** See `openBuffer`. `openPort` starts the log; tests run it without a thread. */
export async function openDiskBuffer(
  { directory, integration, config, segmentBytes, requestBytes }: DiskBufferOptions,
  runtime: Runtime,
  signal: AbortSignal,
  openPort: OpenPort = (start, stop) => openWorkerPort(start, stop),
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
    const port = await openPort({ options, now: moment(runtime), again }, stop);
    const { error, notes } = port.opened;
    for (const note of notes) runtime.log[note.level](note.fields, note.message);
    if (!error) {
      again = true;
      return port;
    }
    await port[Symbol.asyncDispose]();
    throw toError(error);
  };
  return new DiskBuffer(await open(signal), open, runtime, config, directory);
}

class DiskBuffer implements PointBuffer {
  #port: StorePort;
  readonly #open: (signal: AbortSignal) => Promise<StorePort>;
  readonly #runtime: Runtime;
  readonly #directory: string;
  readonly #commit: GroupCommit;
  readonly #metrics: BufferMetrics;
  readonly #closing = new AbortController();
  readonly #ticking: Promise<void>;
  #inputs = new InputTable();
  #stats: BufferStats;
  #reader: DiskReader | undefined;

  constructor(
    port: StorePort,
    open: (signal: AbortSignal) => Promise<StorePort>,
    runtime: Runtime,
    config: BufferOptions,
    directory: string,
  ) {
    this.#port = port;
    this.#open = open;
    this.#runtime = runtime;
    this.#directory = directory;
    this.#stats = statsOf(port.opened);
    this.#learn(port.opened.newInputs);
    this.#metrics = new BufferMetrics(runtime.metrics);
    this.#metrics.update(this.#stats);
    this.#commit = new GroupCommit({
      clock: runtime.clock,
      ackDelayMs: config.ackDelay === "auto" ? autoAckDelay.ms : config.ackDelay,
      hurryDelayMs: config.ackDelay === "auto" ? autoAckDelay.hurryMs : config.ackDelay,
      syncMs: config.sync,
      send: async (group, newInputs) => {
        await this.#call({ kind: "append", newInputs, group }, [group.times.buffer]);
        this.#reader?.wake();
      },
    });
    this.#ticking = this.#tick();
  }

  append(points: readonly Point[] | PointBatch, options: AppendOptions, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#closing.signal.aborted) return Promise.reject(closedError());
    try {
      return orAbort(this.#commit.append(points, options), signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  reader(): Promise<BufferReader> {
    const foreign = this.#foreignError();
    if (foreign) return Promise.reject(foreign);
    if (this.#closing.signal.aborted) return Promise.reject(closedError());
    if (this.#reader) return Promise.reject(new Error("the buffer has one reader, and it is open"));
    this.#reader = new DiskReader({
      call: (request) => this.#call(request, []),
      inputs: () => this.#inputs,
      onDispose: () => {
        this.#reader = undefined;
      },
    });
    return Promise.resolve(this.#reader);
  }

  stats(): BufferStats {
    return this.#stats;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(closedError());
    await this.#commit.flush();
    await this.#reader?.[Symbol.asyncDispose]();
    await this.#ticking;
    try {
      await this.#call({ kind: "close" }, []);
    } catch (error) {
      this.#runtime.log.warn({ part: "buffer", err: String(error) }, "the buffer could not be closed in order");
    }
    this.#metrics.update(this.#stats);
    await this.#port[Symbol.asyncDispose]();
  }

  async #tick(): Promise<void> {
    const { signal } = this.#closing;
    const { clock, log } = this.#runtime;
    let more = false;
    let ticked = clock.monotonic();
    while (!signal.aborted)
      try {
        await (more ? clock.sleep(workEveryMs, signal) : clock.sleep(tickMs, signal, checkGridMs));
        const isCheck = !more;
        more = false;
        if (this.#port.failure) await this.#reopen(this.#port.failure, signal);
        if (isCheck || clock.monotonic() - ticked >= tickMs) {
          ticked = clock.monotonic();
          const reply = await this.#call({ kind: "tick" }, []);
          // An unreadable segment may be readable again, and no other event reports it.
          if (reply.unread) this.#reader?.wake();
          this.#metrics.update(this.#stats);
          more = reply.more;
        } else ({ more } = await this.#call({ kind: "work" }, []));
      } catch (error) {
        if (!signal.aborted) log.error({ part: "buffer", err: String(error) }, "buffer maintenance failed");
      }
  }

  /** The thread has died, perhaps for lack of memory. Leased points are leased again; no durable point is lost. */
  async #reopen(failure: AgentError, signal: AbortSignal): Promise<void> {
    this.#stats = { ...this.#stats, degraded: failure.message };
    await this.#port[Symbol.asyncDispose]();
    try {
      this.#port = await this.#open(signal);
    } catch (error) {
      if (error instanceof Error && !signal.aborted) this.#stats = { ...this.#stats, degraded: error.message };
      throw error;
    }
    this.#inputs = new InputTable();
    this.#learn(this.#port.opened.newInputs);
    this.#stats = statsOf(this.#port.opened);
    this.#commit.forgetSent();
    const foreign = this.#foreignError();
    if (foreign) this.#reader?.revoke(foreign);
    this.#reader?.wake();
    this.#runtime.log.error({ part: "buffer", err: failure.message }, "the log thread had to be started again");
  }

  async #call(request: BareRequest, transfer: readonly ArrayBuffer[]): Promise<StoreReply> {
    const reply = await this.#port.call({ ...request, now: moment(this.#runtime) }, transfer);
    const { degraded } = this.#stats;
    if (reply.stats) this.#stats = reply.stats;
    this.#learn(reply.newInputs);
    // Segments that could not be read may be readable again.
    if (degraded !== undefined && this.#stats.degraded === undefined) this.#reader?.wake();
    for (const { level, fields, message } of reply.notes) this.#runtime.log[level](fields, message);
    if (reply.error) throw toError(reply.error);
    return reply;
  }

  #foreignError(): AgentError | undefined {
    const { foreign } = this.#port.opened;
    return foreign === undefined
      ? undefined
      : new AgentError("BUFFER_FOREIGN", `the backlog in ${this.#directory} belongs to integration ${foreign}`);
  }

  #learn(newInputs: readonly InputId[]): void {
    for (const input of newInputs) this.#inputs.numberOf(input);
  }
}

const moment = ({ clock }: Runtime) => ({ wall: clock.now(), monotonic: clock.monotonic() });

function toError({ code, message, hint }: NonNullable<StoreReply["error"]>): Error {
  return code === "bug" ? new Error(message) : new AgentError(code, message, { hint });
}

/** A reply to a successful open always has counts. */
function statsOf({ stats }: StoreReply): BufferStats {
  if (!stats) throw new Error("the log thread opened a buffer without counts");
  return stats;
}
