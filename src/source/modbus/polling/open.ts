// Opens a source: takes the device from a search, chooses transport and framing, and connects.
import { AgentError } from "../../../core/errors.ts";
import type { Clock, Runtime } from "../../../core/runtime.ts";
import type { Source } from "../../../core/source.ts";
import { orAbort } from "../../../lib/flow/abort.ts";
import { connectionOf, placeOf, silenceHint } from "../config/endpoint.ts";
import type { ModbusOptions } from "../config/options.ts";
import type { ReadRequest, UnitRequest } from "../config/pdu.ts";
import { touches } from "../config/plan.ts";
import { isRegisterTable } from "../config/registers.ts";
import { configFaults, type ModbusConfig, pollTargets } from "../config/tag-reads.ts";
import { streamExchange } from "../connection/exchange.ts";
import { type ModbusConnection, openModbusConnection } from "../connection/modbus-connection.ts";
import type { Exchange, TimedOut } from "../connection/result.ts";
import { asciiCodec, rtuCodec } from "../framing/bus-codec.ts";
import { BusFraming, type BusOptions } from "../framing/bus-framing.ts";
import { BusWatch } from "../framing/bus-watch.ts";
import { type LateReplyTracker, lateReplyTracker } from "../framing/distinct-replies.ts";
import { MbapFraming } from "../framing/mbap-framing.ts";
import { connectTcp, openUdp } from "../transport/byte-stream.ts";
import { gapMs, lineRest, openSerial, wireMs } from "../transport/serial-stream.ts";
import { loadDeviceQuirks } from "./device-quirks.ts";
import { modbusSource } from "./source.ts";

/** Rejects with `SOURCE_UNREACHABLE`, `CONFIG_INVALID` or with `signal.reason`. */
export async function openModbus(config: ModbusConfig, runtime: Runtime, signal: AbortSignal): Promise<Source> {
  const { options, name } = config;
  // `check` reports these faults with their lines; reject a configuration that was not checked.
  const [fault] = configFaults(config);
  if (fault) throw new AgentError("CONFIG_INVALID", `${name}: ${fault.field} ${fault.message}`);
  const own: Runtime = { ...runtime, log: runtime.log.child({ part: "source", source: name, driver: "modbus" }) };
  const targets = pollTargets(config);
  const units = new Set(targets.map((target) => target.unit));
  const quirks = await loadDeviceQuirks(config.stateDir, own);
  const mayRead = (request: ReadRequest) => {
    const { table, start, count } = request;
    const limits = targets.filter(({ unit }) => unit === request.unit).map((target) => target.limits);
    return (
      limits.every(({ forbid = [] }) => !touches(request, forbid)) &&
      limits.every(({ maxRegisters, maxBits }) => count <= (isRegisterTable(table) ? maxRegisters : maxBits)) &&
      quirks
        .cuts(request.unit)
        .every((cut) => cut.table !== table || cut.address <= start || cut.address >= start + count)
    );
  };
  using opening = new DisposableStack();
  opening.use(await takePrecedence(connectionOf(options.url), own.clock, signal));
  const link = await openConnection({ name, options, units, lateReplies: quirks.lateReplies, mayRead }, own, signal);
  return modbusSource(config, targets, link, quirks, own, mayRead, opening.move());
}

/** A line shows another master's requests, and a collision destroys the reply. Only repeats can follow. */
const heldOnLineMs = 50;
/** A gateway hides the requests of its other clients and serves them one by one. */
const heldBehindGatewayMs = 300;

export interface ConnectionConfig {
  readonly name: string;
  readonly options: ModbusOptions;
  /** All units that are ever polled. */
  readonly units: ReadonlySet<number>;
  /** Late answers that may still come on a bus; default: none. They outlive the connection. */
  readonly lateReplies?: LateReplyTracker;
  /** See `BusOptions`. */
  readonly mayRead?: BusOptions["mayRead"];
}

/** Connects to `options.url`. Rejects like `openModbus`. */
export async function openConnection(
  { name, options, units, lateReplies = lateReplyTracker(), mayRead }: ConnectionConfig,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<ModbusConnection> {
  const { url } = options;
  if (url.frames !== "mbap" && units.has(0))
    throw new AgentError("CONFIG_INVALID", `${name}: unit 0 addresses every unit of a bus at once and cannot be read`);
  // Where frames have an id, other traffic does no harm.
  const watch = url.frames === "mbap" ? undefined : watchOf(options, runtime.clock);
  const delayMs = Math.max(options.interRequestDelay, url.transport === "serial" ? gapMs(url.line) : 0);
  const timedOut: TimedOut = new Map();
  const bus = (more: Pick<BusOptions, "reopen" | "peer">) =>
    new BusFraming({ codec: url.frames === "ascii" ? asciiCodec : rtuCodec, lateReplies, mayRead, watch, ...more });
  const mbap = (datagrams: boolean) =>
    new MbapFraming({
      anyUnit: options.replyUnit === "any",
      firstId: Math.floor(runtime.random() * 65_536),
      datagrams,
      peer: placeOf(url),
    });
  const connect = async (connecting: AbortSignal): Promise<Exchange> => {
    const { clock } = runtime;
    if (url.transport === "serial") {
      const rest = lineRest(url.line, options.timeout);
      const port = await openSerial(url.line, connecting);
      return streamExchange(port, bus({ reopen: false }), clock, rest, timedOut, delayMs);
    }
    const { localAddress, connectTimeout: timeoutMs } = options;
    const place = { host: url.host, port: url.port, localAddress };
    if (url.transport === "udp") return streamExchange(await openUdp(place, connecting), mbap(true), clock);
    const stream = await connectTcp({ ...place, timeoutMs }, connecting);
    const peer = { expected: url.frames, peer: placeOf(url) };
    const framing = url.frames === "mbap" ? mbap(false) : bus({ reopen: true, peer });
    return streamExchange(stream, framing, clock, undefined, timedOut, delayMs);
  };
  return await openModbusConnection(
    {
      name,
      units,
      delayMs,
      ...(url.transport === "serial" && { extraMs: (request: UnitRequest) => wireMs(request, url) }),
      pauseAfterConnectMs: options.pauseAfterConnect,
      ...(watch && { disturbances: () => watch.disturbances }),
      isCloseable: url.transport === "tcp",
      closeAfterPoll: options.closeAfterPoll && url.transport === "tcp",
      silenceHint: silenceHint(url),
      connect,
    },
    runtime,
    signal,
  );
}

const watches = new WeakMap<object, BusWatch>();

/** The watch of a bus: one for all connections with the same `options` object. */
function watchOf(options: ModbusOptions, clock: Clock): BusWatch {
  const isLine = options.url.transport === "serial";
  const watch = watches.get(options) ?? new BusWatch(clock, isLine ? heldOnLineMs : heldBehindGatewayMs);
  watches.set(options, watch);
  return watch;
}

// Many devices accept a single connection. A source that connects takes it from a search of this process. The search then
// continues over the connection of the source.

/** Closes the connection of a search between two requests. False: there was none. */
type Release = () => Promise<boolean>;

/** For a device to notice the close, in milliseconds. */
const closedMs = 100;

const searches = new Set<{ readonly place: string; readonly release: Release }>();
const sources = new Set<{ readonly place: string; readonly connected: Promise<void> }>();

/** A search that may open a connection of its own. Disposing it ends the search. `place`: see `connectionOf`. */
export function enterSearch(place: string, release: Release): Disposable {
  const search = { place, release };
  searches.add(search);
  return { [Symbol.dispose]: () => void searches.delete(search) };
}

/**
 * Resolves once no search has a connection to the device. None opens one until the result is disposed. Rejects with
 * `signal.reason`.
 */
async function takePrecedence(place: string, clock: Clock, signal: AbortSignal): Promise<Disposable> {
  const { promise: connected, resolve } = Promise.withResolvers<void>();
  const source = { place, connected };
  using claim = new DisposableStack();
  claim.defer(() => {
    sources.delete(source);
    resolve();
  });
  sources.add(source);
  const here = [...searches].filter((search) => search.place === place);
  const closed = await orAbort(Promise.all(here.map(({ release }) => release())), signal);
  if (closed.includes(true)) await clock.sleep(closedMs, signal);
  return claim.move();
}

/** Resolves when the source that connects to the device at present is connected, or has failed. Undefined: none does. */
export function sourceConnecting(place: string): Promise<void> | undefined {
  return [...sources].find((source) => source.place === place)?.connected;
}
