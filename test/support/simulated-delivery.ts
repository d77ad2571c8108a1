// The dispatcher between a buffer in memory and a service that is a function, in simulated time.
import type { InputId, SignalId } from "../../src/core/point.ts";
import type { Frame, Outcome } from "../../src/core/sink.ts";
import { Pacer } from "../../src/upload/client/pacer.ts";
import { type UploadTally, uploadTally } from "../../src/upload/delivery/delivery-status.ts";
import { Dispatcher } from "../../src/upload/delivery/dispatcher.ts";
import { type LearnedLimit, learnedLimit } from "../../src/upload/failures/learned-limit.ts";
import { parkedInputs } from "../../src/upload/failures/parked-inputs.ts";
import type { Rejects } from "../../src/upload/rejects/rejects.ts";
import type { Catalog } from "../../src/upload/signals/catalog.ts";
import { MemoryReader } from "./memory-reader.ts";
import { ManualClock, type TestRuntime, testRuntime } from "./runtime.ts";

/** A request that the service received. */
export interface SimulatedRequest {
  /** Seconds since the test started its first delivery. */
  readonly second: number;
  readonly inputs: readonly InputId[];
  readonly points: number;
  readonly bytes: number;
  readonly outcome: Outcome["kind"];
}

export class SimulatedDelivery implements AsyncDisposable {
  readonly clock: ManualClock;
  readonly reader: MemoryReader;
  readonly runtime: TestRuntime;
  readonly tally: UploadTally;
  readonly requests: SimulatedRequest[] = [];
  readonly #dispatcher: Dispatcher;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  private constructor(
    answer: (frame: Frame) => Outcome | Promise<Outcome>,
    limit: LearnedLimit,
    before: Before,
    connects?: () => boolean,
    intervalMs = 1_000,
    holds: (input: InputId) => boolean = () => false,
  ) {
    const { clock, reader } = before;
    this.clock = clock;
    this.reader = reader;
    this.runtime = before.runtime;
    this.tally = uploadTally(this.runtime, 1);
    const rejects = { waiting: 0, flush: async () => {}, add: async (_: unknown, kept: () => void) => kept() };
    this.#dispatcher = new Dispatcher(
      {
        reader,
        catalog: { learn: () => {} } as unknown as Catalog, // the only part that is used
        rejects: rejects as unknown as Rejects, // the only part that is used
        tally: this.tally,
        sink: {
          send: async (frame) => {
            const { inputs, points, body } = frame;
            const second = clock.monotonic() / 1_000;
            const outcome = await answer(frame);
            this.requests.push({ second, inputs: [...inputs], points, bytes: body.length, outcome: outcome.kind });
            return outcome;
          },
          ...(connects && { connects: async () => connects() }),
          async [Symbol.asyncDispose]() {},
        },
        pacer: new Pacer(clock, 1),
        limit,
        integration: "c8ktonqsahsmemfs7lv0",
        maxLagMs: 9_000 + intervalMs,
        intervalMs,
        holds,
        parked: parkedInputs(this.runtime),
        parks: true,
      },
      this.runtime,
    );
    this.#running = this.#dispatcher.run(this.#stop.signal, this.#stop.signal);
    this.#running.catch(() => {}); // `stop` reports the error
  }

  /**
   * `before`: the former delivery that this one continues. `connects`: whether the service accepts connections;
   * default: unknown.
   */
  static async start(
    answer: (frame: Frame) => Outcome | Promise<Outcome>,
    before?: Before,
    maxBytes = 2 ** 20,
    connects?: () => boolean,
    intervalMs?: number,
    holds?: (input: InputId) => boolean,
  ): Promise<SimulatedDelivery> {
    const clock = before?.clock ?? new ManualClock();
    const runtime = testRuntime({ clock });
    const limit = learnedLimit(maxBytes, runtime);
    return new SimulatedDelivery(
      answer,
      limit,
      { clock, reader: before?.reader ?? new MemoryReader(), runtime },
      connects,
      intervalMs,
      holds,
    );
  }

  get parked() {
    return this.#dispatcher.progress().parked;
  }

  get state() {
    return this.tally.status({
      ...this.#dispatcher.progress(),
      rejected: 0,
      unkept: 0,
      // the only part that is used
      catalog: { size: 0, pending: new Map(), savedCount: 0, refused: new Map() } as unknown as Catalog,
      watch: undefined,
      traffic: { sentBytes: 0, receivedBytes: 0 },
    });
  }

  /** Appends one point with the current time to each of these inputs. */
  append(...inputs: readonly string[]): void {
    const now = this.clock.now();
    this.reader.append(Object.fromEntries(inputs.map((input) => [input, [[now, 1]]])));
  }

  /** Advances time. Each second a point is appended to each of these inputs. */
  async pass(seconds: number, ...inputs: readonly string[]): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      if (inputs.length > 0) this.append(...inputs);
      await this.clock.advance(1_000);
    }
  }

  /** Stops it as the agent does. All unsettled points are in the buffer again. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error("the test is over"));
    await this.#running;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

type Before = Pick<SimulatedDelivery, "clock" | "reader" | "runtime">;

/** Stores all points except those of inputs for which `isRefused` is true. */
export function storesOthers(isRefused: (input: InputId) => boolean): (frame: Frame) => Outcome {
  return ({ inputs }) => {
    const refused = inputs.filter(isRefused);
    const accepted = inputs.filter((input) => !isRefused(input));
    if (refused.length === 0)
      // the service's format
      return { kind: "accepted", signals: new Map(inputs.map((input) => [input, "c".repeat(20) as SignalId])) };
    return { kind: "partial", accepted, refused: refused.map((input) => ({ input, reason: "no such unit" })) };
  };
}
