// Searches a device for a person who looks for tags, and reads the found nodes again: over the connection of the source
// that reads the device already, if there is one, since many devices accept a single connection.
import type { BrowsedNode, BrowseTarget, DeviceSearch } from "../../../core/commissioning.ts";
import { AgentError } from "../../../core/errors.ts";
import type { Reading } from "../../../core/reading.ts";
import type { Runtime } from "../../../core/runtime.ts";
import { orAbort } from "../../../lib/flow/abort.ts";
import { readingsOf } from "../../../lib/readings/reading-batch.ts";
import { connectionOf } from "../config/endpoint.ts";
import { type ModbusOptions, modbusTag } from "../config/options.ts";
import type { UnitRequest } from "../config/pdu.ts";
import { plan, split } from "../config/plan.ts";
import { type PollTarget, pollTargets } from "../config/tag-reads.ts";
import { FairMutex } from "../connection/breaker.ts";
import { consequenceOf, type Result } from "../connection/framing.ts";
import { enterSearch, sourceConnecting } from "../connection/precedence.ts";
import { decodeBlock } from "../polling/readings.ts";
import { ModbusSource } from "../polling/source.ts";
import type { TagBlock } from "../polling/unit-reader.ts";
import { openProbeConnection, type ProbeConnection } from "./address-scan.ts";
import { searchNodes, searchOf } from "./browse.ts";

/** Values that take longer are left for the next call: the page asks every 2 s and waits 20 s. */
const valuesWithinMs = 4_000;
/** Of the tags that are planned; has no effect. */
const everyMs = 1_000;

/** Connects, unless a running source is connected. Rejects as `browseModbus` does. */
export async function searchModbus(target: BrowseTarget, runtime: Runtime, signal: AbortSignal): Promise<DeviceSearch> {
  const search = searchOf(target);
  const { options, asked } = search;
  const running = () => runningAt(target, options);
  await using opening = new AsyncDisposableStack();
  const link = opening.use(
    new SearchConnection(
      connectionOf(options.url),
      running,
      () => {
        // Between two searches the device is free for others, such as a source that is written in the meantime.
        const own = { ...options, closeAfterPoll: true };
        return openProbeConnection({ name: "browse", options: own, units: new Set(asked) }, runtime, signal);
      },
      signal,
    ),
  );
  await link.connect();
  const polled = running()?.units ?? [];
  const known = asked.filter((unit) => polled.includes(unit));
  // Units of the source are what the person most likely looks for.
  const order = [...known, ...asked.filter((unit) => !known.includes(unit))];
  const values = new NodeValues(options, link, runtime);
  const opened = opening.move();
  return {
    nodes: () => searchNodes({ ...search, asked: order, known }, link),
    values: (nodes) => values.read(nodes),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** The source that is connected to the device at `options.url`. */
function runningAt({ running }: BrowseTarget, { url }: ModbusOptions): ModbusSource | undefined {
  const sources = (running?.() ?? []).filter((source) => source instanceof ModbusSource);
  return sources.find(
    ({ isLost, options }) =>
      !isLost &&
      connectionOf(options.url) === connectionOf(url) &&
      options.url.frames === url.frames &&
      options.url.transport === url.transport,
  );
}

/** No unit has this number. */
const releaseTurn = -1;

/** The connection of the running source while it has one, otherwise one of its own, unless a source connects. */
class SearchConnection implements ProbeConnection {
  readonly #place: string;
  readonly #running: () => ModbusSource | undefined;
  readonly #open: () => Promise<ProbeConnection>;
  readonly #signal: AbortSignal;
  readonly #mutex = new FairMutex();
  readonly #search: Disposable;
  #own: ProbeConnection | undefined;

  constructor(
    place: string,
    running: () => ModbusSource | undefined,
    open: () => Promise<ProbeConnection>,
    signal: AbortSignal,
  ) {
    this.#place = place;
    this.#running = running;
    this.#open = open;
    this.#signal = signal;
    this.#search = enterSearch(place, () => this.#release());
  }

  /** Rejects as `openConnection` does. */
  async connect(): Promise<void> {
    using _turn = await this.#turn(releaseTurn);
    if (!this.#running()) this.#own = await this.#open();
  }

  async read(request: UnitRequest, timeoutMs: number): Promise<Result> {
    using _turn = await this.#turn(request.unit);
    const source = this.#running();
    if (!source) {
      this.#own ??= await this.#open();
      try {
        return await this.#own.read(request, timeoutMs);
      } catch (error) {
        // The next request opens another one.
        await this.#closeOwn();
        throw error;
      }
    }
    await this.#closeOwn();
    try {
      return await source.search(request, timeoutMs, this.#signal);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      return { kind: "silence", mismatch: error.message, received: true };
    }
  }

  /** A turn in which no source connects. A connecting source waits for a turn, too. */
  async #turn(unit: number): Promise<Disposable> {
    for (;;) {
      const turn = await this.#mutex.take(unit, this.#signal);
      const connecting = this.#running() ? undefined : sourceConnecting(this.#place);
      if (!connecting) return turn;
      turn[Symbol.dispose]();
      await orAbort(connecting, this.#signal);
    }
  }

  async #release(): Promise<boolean> {
    // Once the search has ended, its connection is closed.
    using turn = await this.#mutex.take(releaseTurn, this.#signal).catch(() => undefined);
    return turn !== undefined && (await this.#closeOwn());
  }

  async #closeOwn(): Promise<boolean> {
    const own = this.#own;
    this.#own = undefined;
    await own?.[Symbol.asyncDispose]();
    return own !== undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#search[Symbol.dispose]();
    await this.#closeOwn();
  }
}

/** Whether the node stands for a value: not for a unit, a range or a code that often means "no value". */
function isReadable({ depth, value, tag }: BrowsedNode): boolean {
  return depth > 0 && (value !== undefined || tag["nullValues"] !== undefined);
}

/** Reads found nodes again. */
class NodeValues {
  readonly #options: ModbusOptions;
  readonly #link: SearchConnection;
  readonly #runtime: Runtime;
  /** Requests so far, so that a call that ends early is continued by the next one. */
  #turn = 0;

  constructor(options: ModbusOptions, link: SearchConnection, runtime: Runtime) {
    this.#options = options;
    this.#link = link;
    this.#runtime = runtime;
  }

  /** Values in the order of `nodes`; undefined: not read this time, or not a usable value. */
  async read(nodes: readonly BrowsedNode[]): Promise<readonly BrowsedNode["value"][]> {
    const { clock } = this.#runtime;
    const places = nodes.flatMap((node, index) => {
      const tag = isReadable(node) ? modbusTag.safeParse(node.tag).data : undefined;
      return tag ? [{ index, tag: { ...tag, every: everyMs } }] : [];
    });
    const targets = pollTargets({ options: this.#options, tags: places.map(({ tag }) => tag) });
    const blocks = targets.flatMap((target) =>
      // Addresses between the nodes may be refused, so that the whole request fails.
      plan(target.wanted, { ...target.limits, maxGap: 0 }).map((block) => ({ target, block })),
    );
    const values: BrowsedNode["value"][] = nodes.map(() => undefined);
    const end = clock.monotonic() + valuesWithinMs;
    for (let left = blocks.length; left > 0 && clock.monotonic() < end; left--) {
      const next = blocks[this.#turn++ % blocks.length];
      for (const { tag, value } of next ? await this.#readBlock(next.target, next.block) : []) {
        const place = places[tag];
        if (place) values[place.index] = value;
      }
    }
    return values;
  }

  async #readBlock(target: PollTarget, block: TagBlock): Promise<readonly Reading[]> {
    const { table, start, count } = block;
    const result = await this.#link.read({ unit: target.unit, table, start, count }, target.timeoutMs);
    if (result.kind === "data") return readingsOf([decodeBlock(block, result.bytes, result.at)]);
    if (result.kind !== "exception" || consequenceOf(result.code) !== "split") return [];
    const halves = split(block) ?? [];
    return (await Promise.all(halves.map((half) => this.#readBlock(target, half)))).flat();
  }
}
