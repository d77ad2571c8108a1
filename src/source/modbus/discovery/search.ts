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
import { consequenceOf, type UnitRequest } from "../config/pdu.ts";
import { plan, split } from "../config/plan.ts";
import { type PollTarget, pollTargets } from "../config/tag-reads.ts";
import { fairMutex } from "../connection/breaker.ts";
import type { ModbusConnection } from "../connection/modbus-connection.ts";
import type { Result } from "../connection/result.ts";
import { enterSearch, openConnection, sourceConnecting } from "../polling/open.ts";
import { decodeBlock } from "../polling/readings.ts";
import { type PolledDevice, polledDevice } from "../polling/source.ts";
import type { TagBlock } from "../polling/unit-reader.ts";
import type { ProbeConnection } from "./address-scan.ts";
import { searchNodes, searchOf } from "./browse.ts";

/** Values that take longer are left for the next call: the page asks every 2 s and waits 20 s. */
const valuesWithinMs = 4_000;
/** Of the tags that are planned; has no effect. */
const everyMs = 1_000;

/** Connects, unless a running source is connected. Rejects with `CONFIG_INVALID`, `SOURCE_*` or `signal.reason`. */
export async function searchModbus(target: BrowseTarget, runtime: Runtime, signal: AbortSignal): Promise<DeviceSearch> {
  const search = searchOf(target);
  const { options, candidates } = search;
  const running = () => runningAt(target, options);
  await using opening = new AsyncDisposableStack();
  const link = opening.use(
    searchConnection(
      connectionOf(options.url),
      running,
      () => {
        // Between two searches the device is free for others, such as a source that is written in the meantime.
        const own = { ...options, closeAfterPoll: true };
        return openConnection({ name: "browse", options: own, units: new Set(candidates) }, runtime, signal);
      },
      signal,
    ),
  );
  await link.connect();
  const polled = running()?.units ?? [];
  const known = candidates.filter((unit) => polled.includes(unit));
  // Units of the source are what the person most likely looks for.
  const order = [...known, ...candidates.filter((unit) => !known.includes(unit))];
  const opened = opening.move();
  return {
    nodes: () => searchNodes({ ...search, candidates: order, known }, link),
    values: nodeReader(options, link, runtime),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** The source that is connected to the device at `options.url`. */
function runningAt({ running }: BrowseTarget, { url }: ModbusOptions): PolledDevice | undefined {
  const devices = (running?.() ?? []).flatMap((source) => polledDevice(source) ?? []);
  return devices.find(
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
function searchConnection(
  place: string,
  running: () => PolledDevice | undefined,
  open: () => Promise<ModbusConnection>,
  signal: AbortSignal,
) {
  const mutex = fairMutex();
  let owned: ModbusConnection | undefined;
  let hasAnswered = false;
  const search = enterSearch(place, () => release());

  /** A turn in which no source connects. A connecting source waits for a turn, too. */
  async function turn(unit: number): Promise<Disposable> {
    for (;;) {
      const turn = await mutex.take(unit, signal);
      const connecting = running() ? undefined : sourceConnecting(place);
      if (!connecting) return turn;
      turn[Symbol.dispose]();
      await orAbort(connecting, signal);
    }
  }

  async function release(): Promise<boolean> {
    // Once the search has ended, its connection is closed.
    using turn = await mutex.take(releaseTurn, signal).catch(() => undefined);
    return turn !== undefined && (await closeOwn());
  }

  async function closeOwn(): Promise<boolean> {
    const own = owned;
    owned = undefined;
    await own?.[Symbol.asyncDispose]();
    return own !== undefined;
  }

  return {
    /** Rejects as `openConnection` does. */
    async connect(): Promise<void> {
      using _turn = await turn(releaseTurn);
      if (!running()) owned = await open();
    },
    async read(request: UnitRequest, timeoutMs: number): Promise<Result> {
      using _turn = await turn(request.unit);
      const source = running();
      if (!source) {
        owned ??= await open();
        try {
          const result = await owned.read(request, timeoutMs, signal);
          hasAnswered ||= result.kind === "data" || result.kind === "exception";
          return result;
        } catch (error) {
          // A device may close the connection on an unknown request. The next request opens another one.
          await closeOwn();
          if (hasAnswered) return silenceOf(error);
          throw error;
        }
      }
      await closeOwn();
      return await source.search(request, timeoutMs, signal).catch(silenceOf);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      search[Symbol.dispose]();
      await closeOwn();
    },
  };
}

function silenceOf(error: unknown): Result {
  if (!(error instanceof AgentError)) throw error;
  return { kind: "silence", mismatch: error.message, received: true };
}

/** Whether the node stands for a value: not for a unit, a range or a code that often means "no value". */
function isReadable({ depth, value, tag }: BrowsedNode): boolean {
  return depth > 0 && (value !== undefined || tag["nullValues"] !== undefined);
}

/** Reads found nodes again. */
function nodeReader(options: ModbusOptions, link: ProbeConnection, { clock }: Runtime): DeviceSearch["values"] {
  /** Requests so far, so that a call that ends early is continued by the next one. */
  let turn = 0;

  async function readBlock(target: PollTarget, block: TagBlock): Promise<readonly Reading[]> {
    const { table, start, count } = block;
    const result = await link.read({ unit: target.unit, table, start, count }, target.timeoutMs);
    if (result.kind === "data") return readingsOf([decodeBlock(block, result.bytes, result.at)]);
    if (result.kind !== "exception" || consequenceOf(result.code) !== "split") return [];
    const halves = split(block) ?? [];
    return (await Promise.all(halves.map((half) => readBlock(target, half)))).flat();
  }

  return async (nodes) => {
    const places = nodes.flatMap((node, index) => {
      const tag = isReadable(node) ? modbusTag.safeParse(node.tag).data : undefined;
      return tag ? [{ index, tag: { ...tag, every: everyMs } }] : [];
    });
    const targets = pollTargets({ options, tags: places.map(({ tag }) => tag) });
    const blocks = targets.flatMap((target) =>
      // Addresses between the nodes may be refused, so that the whole request fails.
      plan(target.spans, { ...target.limits, maxGap: 0 }).map((block) => ({ target, block })),
    );
    const values: BrowsedNode["value"][] = nodes.map(() => undefined);
    const end = clock.monotonic() + valuesWithinMs;
    for (let left = blocks.length; left > 0 && clock.monotonic() < end; left--) {
      const next = blocks[turn++ % blocks.length];
      for (const { tag, value } of next ? await readBlock(next.target, next.block) : []) {
        const place = places[tag];
        if (place) values[place.index] = value;
      }
    }
    return values;
  };
}
