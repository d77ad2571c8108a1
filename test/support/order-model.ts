// The real buffer on a disk in memory, the real dispatcher and a service that misbehaves by a script, in simulated
// time.
// Whatever happens, the service must end with the value appended last for each input and time, or with every value of
// an input with `sameTime: keep`.
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import type { BufferReader, PointBuffer } from "../../src/core/buffer.ts";
import { epochMicros, type InputId, type Point } from "../../src/core/point.ts";
import type { Clock } from "../../src/core/runtime.ts";
import { Pacer } from "../../src/upload/client/pacer.ts";
import { uploadTally } from "../../src/upload/delivery/delivery-status.ts";
import { Dispatcher } from "../../src/upload/delivery/dispatcher.ts";
import { learnedLimit } from "../../src/upload/failures/learned-limit.ts";
import { parkedInputs } from "../../src/upload/failures/parked-inputs.ts";
import type { Reject, Rejects } from "../../src/upload/rejects/rejects.ts";
import type { Catalog } from "../../src/upload/signals/catalog.ts";
import { inProcess } from "./disk-store.ts";
import { failure, MemoryDisk } from "./memory-disk.ts";
import { type Difference, differencesOf } from "./order-oracle.ts";
import type { OrderModelOptions, Sample, Step } from "./order-story.ts";
import { ManualClock, seeded, testRuntime } from "./runtime.ts";
import { failingFrom, poisonFrom, SinkWorld } from "./scripted-sink.ts";

const inputs = ["a", "b", "c"] as InputId[]; // valid Input IDs
const maxLagMs = 5_000;
const config = bufferOptions.parse({ reserveFreeDisk: "0", sync: "20ms", ackDelay: "1ms" });
const never = new Promise<never>(() => {});
const noStop = new AbortController().signal;
/** The maximum time in which a correct uploader delivers everything, including the back-off of parked inputs. */
const longestMs = 6 * 3_600_000;

interface Life {
  readonly buffer: PointBuffer;
  readonly clock: Clock;
  readonly crash: { now: boolean };
  uploading: { readonly reader: BufferReader; readonly stop: AbortController; readonly running: Promise<void> };
}

export class OrderModel {
  readonly #options: OrderModelOptions;
  readonly #world = new ManualClock();
  readonly #service = new SinkWorld(inputs, 300);
  readonly #messages: Point[][] = [];
  /** The number of messages that were acknowledged. */
  #acknowledged = 0;
  readonly #held = new Set<InputId>();
  readonly #rejects: Reject[] = [];
  #isFull = false;
  #lastValue = 0;
  #disk = new MemoryDisk();
  #unread: "none" | "oldest" = "none";
  #life!: Life;
  /** The error with which a part ended that must not end. */
  #failure: Error | undefined;

  private constructor(options: OrderModelOptions) {
    this.#options = options;
  }

  static async run(options: OrderModelOptions, steps: readonly Step[]): Promise<OrderModel> {
    const model = new OrderModel(options);
    model.#life = await model.#born();
    for (const step of steps) {
      await model.#step(step);
      if (model.#failure !== undefined) throw model.#failure;
    }
    await model.#end();
    return model;
  }

  differences(): Difference[] {
    return differencesOf(this.#messages.flat(), this.#rejects, this.#service.stored);
  }

  get requests(): number {
    return this.#service.requests;
  }

  async #step(step: Step): Promise<void> {
    switch (step.do) {
      case "append":
        this.#append(step.samples);
        return;
      case "pass":
        return await this.#world.advance(step.ms);
      case "answer":
        this.#service.script.push(...step.answers);
        return;
      case "outage":
        this.#service.isUnmounted = step.isUnmounted;
        return;
      case "hold":
        if (step.isHeld) this.#held.add(inputs[step.input]!);
        else this.#held.delete(inputs[step.input]!);
        return;
      case "fill":
        this.#isFull = step.isFull;
        return;
      case "unread":
        this.#unread = step.which;
        return;
      case "reload":
        await this.#stopUploading();
        this.#life.uploading = await this.#upload(this.#life);
        return;
      case "stop":
        this.#unread = "none";
        await this.#stopUploading();
        await this.#through(this.#life.buffer[Symbol.asyncDispose]());
        this.#life = await this.#born();
        this.#deliver(this.#acknowledged);
        return;
      case "limit":
        this.#service.mostBytes = step.bytes;
        return;
      case "forbid":
        this.#service.forbidden = step.inputs;
        return;
      case "kill":
        return await this.#crash(this.#disk.afterKill(), step.again);
      case "powerCut": {
        const random = seeded(step.seed);
        return await this.#crash(
          this.#disk.afterPowerCut(() => random() < 0.5),
          step.again,
        );
      }
    }
  }

  async #crash(disk: MemoryDisk, again: number): Promise<void> {
    this.#unread = "none";
    this.#life.crash.now = true;
    this.#disk = disk;
    this.#life = await this.#born();
    this.#deliver(Math.min(this.#acknowledged, this.#messages.length - again));
  }

  #append(samples: readonly Sample[]): void {
    const second = epochMicros(Math.floor(this.#world.now() / 1e6) * 1e6);
    const earlier = this.#messages.flat();
    const message = samples.map(({ input, time, back, value }): Point => {
      const own = earlier.filter((point) => point.input === inputs[input]);
      const same = own.at(-1 - back)?.time ?? second;
      const old = epochMicros(second - (60 + back) * 1e6);
      if (value === "new") this.#lastValue++;
      const point = {
        input: inputs[input]!,
        time: { fresh: second, same, old }[time],
        value: this.#valueOf(value),
        ...(((this.#options.keep ?? 0) & (1 << input)) !== 0 && { sameTime: "keep" as const }),
      };
      earlier.push(point);
      return point;
    });
    this.#messages.push(message);
    this.#deliver(this.#messages.length - 1);
  }

  #valueOf(value: Sample["value"]): number {
    if (value === "poison") return poisonFrom + ++this.#lastValue;
    return value === "failing" ? failingFrom + ++this.#lastValue : this.#lastValue;
  }

  /** Delivers as a broker does: in order, and unacknowledged messages again. */
  #deliver(from: number): void {
    const { buffer, crash } = this.#life;
    for (let i = Math.max(0, from); i < this.#messages.length; i++)
      buffer.append(this.#messages[i]!, { awaited: true }, noStop).then(
        () => {
          if (!crash.now) this.#acknowledged = Math.max(this.#acknowledged, i + 1);
        },
        (error: unknown) => this.#failed(error, crash),
      );
  }

  #failed(error: unknown, crash: { readonly now: boolean }): void {
    if (!crash.now) this.#failure ??= new Error(String(error), { cause: error });
  }

  async #born(): Promise<Life> {
    const crash = { now: false };
    const world = this.#world;
    const clock: Clock = {
      now: () => world.now(),
      monotonic: () => world.monotonic(),
      sleep: async (ms, signal) => {
        if (crash.now) return await never;
        await world.sleep(ms, signal);
        if (crash.now) await never;
      },
    };
    const disk = this.#disk;
    disk.fault = (call, path) => {
      if (this.#unread === "none" || call !== "read" || !path.includes("seg-")) return undefined;
      const segments = disk
        .list("/data")
        .filter((name) => name.startsWith("seg-"))
        .toSorted();
      if (segments.length > 1 && path.endsWith(segments[0]!)) throw failure("EIO", path);
      return undefined;
    };
    const options = { directory: "/data", integration: "plant", config, segmentBytes: 8_192 };
    const buffer = await this.#through(openDiskBuffer(options, testRuntime({ clock }), noStop, inProcess(disk, crash)));
    const life = { buffer, clock, crash };
    return { ...life, uploading: await this.#upload(life) };
  }

  async #upload({ buffer, clock, crash }: Pick<Life, "buffer" | "clock" | "crash">): Promise<Life["uploading"]> {
    const runtime = testRuntime({ clock });
    const reader = await buffer.reader();
    const dispatcher = new Dispatcher(
      {
        reader,
        catalog: { learn: () => {} } as unknown as Catalog, // the only part that is used
        rejects: this.#rejectsOf(crash),
        tally: uploadTally(runtime, 1),
        sink: this.#service.sink(clock),
        pacer: new Pacer(clock, 1),
        limit: learnedLimit(this.#options.maxBytes, runtime),
        integration: "c8ktonqsahsmemfs7lv0",
        maxLagMs,
        intervalMs: 1_000,
        holds: (input) => this.#held.has(input),
        parked: parkedInputs(runtime),
        parks: true,
      },
      runtime,
    );
    const stop = new AbortController();
    const grace = new AbortController();
    stop.signal.addEventListener("abort", () => {
      clock.sleep(5_000, noStop).then(
        () => grace.abort(new Error("stopped")),
        () => {},
      );
    });
    const running = dispatcher.run(stop.signal, grace.signal);
    running.catch((error: unknown) => this.#failed(error, crash));
    return { reader, stop, running };
  }

  /** Keeps refused points in memory. While the disk is full they wait, and a crash loses the waiting ones. */
  #rejectsOf(crash: { now: boolean }): Rejects {
    const waiting: { readonly points: readonly Reject[]; readonly kept: () => void }[] = [];
    const flush = async () => {
      if (crash.now) return await never;
      if (this.#isFull) return;
      for (const { points, kept } of waiting.splice(0)) {
        this.#rejects.push(...points);
        kept();
      }
    };
    const add = async (points: readonly Reject[], kept: () => void) => {
      waiting.push({ points, kept });
      await flush();
    };
    const rejects = {
      get waiting() {
        return waiting.length;
      },
      add,
      flush,
    };
    return rejects as unknown as Rejects; // the only part that is used
  }

  async #stopUploading(): Promise<void> {
    const { stop, running, reader } = this.#life.uploading;
    stop.abort(new Error("stopped"));
    await this.#through(running);
    await this.#through(reader[Symbol.asyncDispose]());
  }

  /**
   * Ends all faults and waits until everything is delivered; first everything except the inputs on which the service
   * fails.
   */
  async #end(): Promise<void> {
    this.#service.isUnmounted = false;
    this.#service.script.length = 0;
    this.#service.mostBytes = Number.POSITIVE_INFINITY;
    this.#service.forbidden = 0;
    this.#held.clear();
    this.#isFull = false;
    this.#unread = "none";
    const { buffer } = this.#life;
    const points = this.#messages.flat();
    const failing = new Set(points.filter(({ value }) => value >= failingFrom).map(({ input }) => input));
    const others = points.filter(({ input }) => !failing.has(input));
    if (failing.size > 0)
      await this.#until(() => differencesOf(others, this.#rejects, this.#service.stored).length === 0);
    this.#service.fails = false;
    await this.#until(() => this.#acknowledged === this.#messages.length && buffer.stats().unsettledPoints === 0);
    await this.#stopUploading();
    await this.#through(buffer[Symbol.asyncDispose]());
    const { losses } = buffer.stats();
    if (losses.length > 0) throw new Error(`points were lost: ${JSON.stringify(losses)}`);
  }

  async #until(isOver: () => boolean): Promise<void> {
    const until = this.#world.monotonic() + longestMs;
    do {
      await this.#world.advance(1_000);
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#world.monotonic() > until)
        throw new Error(`${this.#life.buffer.stats().unsettledPoints} points are not delivered`);
    } while (!isOver());
  }

  /** Advances time until the promise settles. */
  async #through<T>(promise: PromiseLike<T>): Promise<T> {
    let isSettled = false;
    const settle = () => {
      isSettled = true;
    };
    promise.then(settle, settle);
    for (let i = 0; !isSettled; i++) {
      if (i > 1_000) throw new Error("something does not end");
      await this.#world.advance(20);
    }
    return await promise;
  }
}
