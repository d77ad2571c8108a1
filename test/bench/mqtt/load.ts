// The load, and the result of a client that received it, as the processes of the bench exchange them.

export interface Load {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly qos: 0 | 1;
  /** Messages a second. 0: as many as the broker accepts. */
  readonly rate: number;
  readonly topics: number;
  /** The total number of messages. */
  readonly total: number;
  /** Milliseconds added to each sync of the disk. */
  readonly syncMs: number;
}

/** The last line of a client on stdout. Its first line is `ready`, once it has subscribed. */
export interface Usage {
  readonly seen: number;
  /** From the first message to the last. */
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly rssMB: number;
  /** Parts of `rssMB`: used heap of the main thread, reserved heap, and buffers outside the heap. */
  readonly memoryMB?: { readonly heap: number; readonly reserved: number; readonly buffers: number };
  /** Highest and lowest resident memory after the first tenth of the messages. */
  readonly rssRangeMB?: readonly [number, number];
  /** Milliseconds from publishing to acknowledging. */
  readonly ackP50?: number;
  readonly ackP99?: number;
}

/** Measures time and CPU time from the first message on. */
export class Meter {
  #seen = 0;
  #begin = 0;
  #cpu = process.cpuUsage();
  readonly #total: number;
  readonly #rss: number[] = [];
  readonly #latencies: number[] = [];
  #sampledAt = 0;

  constructor(total: number) {
    this.#total = total;
  }

  /** Returns true with the last message. */
  count(messages: number): boolean {
    const now = performance.now();
    if (this.#seen === 0) {
      this.#begin = now;
      this.#cpu = process.cpuUsage();
    }
    this.#seen += messages;
    if (this.#seen > this.#total / 10 && now - this.#sampledAt > 1_000) {
      this.#sampledAt = now;
      this.#rss.push(process.memoryUsage.rss() / 1e6);
    }
    return this.#seen >= this.#total;
  }

  acknowledged(ms: number): void {
    this.#latencies.push(ms);
  }

  usage(): Usage {
    const { user, system } = process.cpuUsage(this.#cpu);
    const latencies = this.#latencies.toSorted((a, b) => a - b);
    const at = (share: number) => latencies[Math.floor(latencies.length * share)];
    const [ackP50, ackP99] = [at(0.5), at(0.99)];
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    return {
      seen: this.#seen,
      seconds: (performance.now() - this.#begin) / 1_000,
      cpuSeconds: (user + system) / 1e6,
      rssMB: Math.round(rss / 1e6),
      memoryMB: {
        heap: Math.round(heapUsed / 1e6),
        reserved: Math.round(heapTotal / 1e6),
        buffers: Math.round(external / 1e6),
      },
      ...(this.#rss.length > 1 && {
        rssRangeMB: [Math.round(Math.min(...this.#rss)), Math.round(Math.max(...this.#rss))] as const,
      }),
      ...(ackP50 !== undefined && { ackP50 }),
      ...(ackP99 !== undefined && { ackP99 }),
    };
  }
}
