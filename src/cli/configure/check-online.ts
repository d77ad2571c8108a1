// The online part of `tagferry check`: contacts the service and each source.
import { z } from "zod";
import type { Warning } from "../../agent/status/status.ts";
import { NatsLink, natsHeartbeats } from "../../cluster/connection/nats-connection.ts";
import { natsStream } from "../../cluster/connection/nats-jetstream.ts";
import type { ClusterOptions } from "../../cluster/connection/options.ts";
import { readHeartbeat } from "../../cluster/members/membership.ts";
import type { Config, ConfiguredSource } from "../../config/format/config.ts";
import type { ConfigIssue } from "../../config/nodes/issue.ts";
import type { RefusedTags } from "../../config/sources/source-config.ts";
import { AgentError, isAgentError, reasonOf } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { ConfigFault, DeviceCheck, SourceCheck } from "../../core/source.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";
import { Converter } from "../../mapping/convert.ts";
import { InputOwners } from "../../mapping/input-owners.ts";
import { serviceFailure } from "../../upload/client/method-caller.ts";
import { Pacer } from "../../upload/client/pacer.ts";
import { answerBytes } from "../../upload/client/rpc-client.ts";
import { runningTakeovers } from "../shared/agent-client.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import { connectedWithin, openServiceClient } from "../shared/service-caller.ts";
import { openShadowSource, refusedAddresses } from "../shared/source-scan.ts";
import { deviceFailure, type ExitStatus, exitStatus } from "../terminal/exit-status.ts";

export interface Reached {
  /** `service`, or `cluster` if configured, or the name of a source. */
  readonly what: string;
  readonly ok: boolean;
  readonly ms: number;
  readonly error?: string;
  readonly remedy?: string;
  /** A recommendation although the device answers. */
  readonly advice?: string;
  /** The answer of each device behind the connection, if the protocol polls them individually. */
  readonly devices?: readonly DeviceCheck[];
  /** Tags that cannot give a value with the current configuration and device. */
  readonly refusedTags?: {
    readonly count: number;
    readonly of: number;
    /** At most 20. */
    readonly first: readonly ConfigIssue[];
  };
  /** Addresses that would not be stored, since another one feeds their Input ID. */
  readonly refused?: readonly Warning[];
  readonly exit: ExitStatus;
}

/** Time limit for each check, in milliseconds. Drivers have shorter limits of their own. */
const withinMs = 60_000;

const mostShown = 20;

type Found = Pick<Reached, "advice" | "refused" | "devices" | "refusedTags">;
type Locate = (refused: RefusedTags) => Promise<readonly ConfigIssue[]>;

/** Checks all concurrently without storing or acknowledging. Rejects as `locate` does, or with `signal.reason`. */
export function checkOnline(config: Config, locate: Locate, signal: AbortSignal): Promise<readonly Reached[]> {
  const runtime = commandRuntime();
  const owners = new InputOwners();
  const takeovers = config.sources.some(({ driver }) => "claims" in driver)
    ? runningTakeovers(config, signal)
    : Promise.resolve(new Map<string, AgentError>());
  // After ^C, no source may have reached the point of awaiting this promise.
  takeovers.catch(() => {});
  return Promise.all([
    config.cluster
      ? reach(
          "cluster",
          async (stop) => ({ advice: await checkCluster(config.cluster!, config, runtime, stop) }),
          signal,
        )
      : reach("service", (stop) => reachService(config, runtime, stop), signal),
    ...config.sources.map((source) =>
      reach(
        source.name,
        async (stop): Promise<Found> => {
          await using opened = await openShadowSource(source, config, runtime, stop);
          const { advice } = opened.details?.() ?? {};
          const refused = await refusedAddresses(source, opened, owners, runtime, stop);
          const { devices, refused: faults, values = [] } = await opened.check(stop);
          const takeover = (await takeovers).get(source.name);
          if (takeover) throw takeover;
          return {
            ...(advice !== undefined && { advice: String(advice) }),
            ...(refused.length > 0 && { refused }),
            ...(devices && { devices }),
            ...(await refusedTags(source, [...faults, ...texts(source, values)], locate)),
          };
        },
        signal,
        (error) => refusedTags(source, refusedBy(error), locate),
      ),
    ),
  ]);
}

async function refusedTags(
  { name, tags }: ConfiguredSource,
  faults: readonly ConfigFault[],
  locate: Locate,
): Promise<Pick<Reached, "refusedTags">> {
  if (faults.length === 0) return {};
  const count = new Set(faults.map(({ tag }) => tag)).size;
  const first = await locate(new Map([[name, faults.slice(0, mostShown)]]));
  return { refusedTags: { count, of: tags.length, first } };
}

/** Text values that cannot be converted to a number. */
function texts({ rules }: ConfiguredSource, values: NonNullable<SourceCheck["values"]>): readonly ConfigFault[] {
  return values.flatMap(({ tag, value }) => {
    const rule = rules[tag];
    if (typeof value !== "string" || !rule || rule.signal.enumValues) return [];
    const converter = new Converter(rule);
    converter.convert(value, undefined);
    if (converter.failure !== "notNumber") return [];
    const message = `expected a number, got the text ${JSON.stringify(value.slice(0, 40))}`;
    return [{ tag, field: "", message, hint: "give the number of each word under values" }];
  });
}

function refusedBy(error: unknown): readonly ConfigFault[] {
  const cause = z.object({ refused: z.array(z.custom<ConfigFault>()) });
  const carried = cause.safeParse(isAgentError(error, "SOURCE_REFUSED") ? error.cause : undefined);
  return carried.success ? carried.data.refused : [];
}

async function reach(
  what: string,
  ask: (signal: AbortSignal) => Promise<Found | void>,
  signal: AbortSignal,
  refusedOf: (error: unknown) => Promise<Found> = async () => ({}),
): Promise<Reached> {
  const started = performance.now();
  const elapsed = () => Math.round(performance.now() - started);
  try {
    const found = await ask(AbortSignal.any([signal, AbortSignal.timeout(withinMs)]));
    const isAway = found?.devices?.some(({ ok }) => !ok) ?? false;
    const isRefused = (found?.refused ?? found?.refusedTags) !== undefined;
    const exit = isAway ? exitStatus.unreachable : isRefused ? exitStatus.failed : exitStatus.done;
    return { what, ok: exit === exitStatus.done, ms: elapsed(), ...found, exit };
  } catch (error) {
    signal.throwIfAborted();
    const { message, hint, exit } = deviceFailure(error);
    return { what, ok: false, ms: elapsed(), error: message, remedy: hint, ...(await refusedOf(error)), exit };
  }
}

/** Saves an empty set of signals. That needs valid credentials and changes nothing. */
async function reachService(config: Config, runtime: Runtime, signal: AbortSignal): Promise<void> {
  const { service } = config;
  await using opened = await openServiceClient(config, runtime);
  const { client, turns } = opened;
  const inputs = service.apiVersion === "1.1" ? "signalsByInput" : "inputs";
  const params = { integration: service.integration, [inputs]: {}, createOnly: true };
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "integration.saveSignals", id: 1, params }));
  const call = () => client.call({ id: 1, body, maxAnswerBytes: answerBytes }, signal);
  const pacer = new Pacer(runtime.clock, 1, turns?.of("integration.saveSignals"));
  let verdict = turns ? await pacer.run(call, signal) : await call();
  // The token of the last run had expired; try again with a new one.
  if (verdict.kind === "throttled" && verdict.retryAfterMs === 0) verdict = await pacer.run(call, signal);
  // Throttling counts as reachable, since other clients may use up the permitted requests.
  if (verdict.kind !== "done" && verdict.kind !== "throttled") throw serviceFailure(service.url, verdict);
}

const oldestServer = "2.10.23";
const recommendedServer = "2.14.0";
/** Each agent has sent a heartbeat by then. */
const listenMs = 2_500;
/** Smaller differences between clocks may be due to the network. */
const toleratedMs = 1_000;

const isOlder = (version: string, than: string) => version.localeCompare(than, undefined, { numeric: true }) < 0;

/**
 * Connects to each server as the agent does, and sends nothing to the service, whose rate the agents share. Resolves with
 * text for the operator. Rejects with `CLUSTER_UNREACHABLE` if no server answers.
 */
async function checkCluster(
  options: ClusterOptions,
  { agent, service }: Config,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<string> {
  await using opened = new AsyncDisposableStack();
  const found = await Promise.all(
    options.servers.map(async (address) => {
      const one = { ...options, servers: [address] };
      const link = opened.use(new NatsLink(one, agent.name, runtime));
      try {
        await connectedWithin(link, one, signal);
        return { link, server: link.state.server ?? { name: address, version: "" } };
      } catch (error) {
        signal.throwIfAborted();
        return { reason: reasonOf(error) };
      }
    }),
  );
  const reached = found.flatMap((one) => (one.link ? [one] : []));
  const failed = found.flatMap(({ reason }) => reason ?? []);
  const [first] = reached;
  if (!first) throw new AgentError("CLUSTER_UNREACHABLE", failed.join("; "));
  const servers = new Map(reached.map(({ server }) => [server.name, server.version]));
  const versions = Array.from(servers, ([name, version]) => {
    const remark = isOlder(version, oldestServer)
      ? `, older than ${oldestServer}, the oldest that is supported`
      : isOlder(version, recommendedServer)
        ? `, 2.14 or later is recommended`
        : "";
    return `${name}, nats-server ${version}${remark}`;
  });
  const placed =
    servers.size < options.replicas
      ? [`replicas: ${options.replicas} needs as many servers, ${servers.size} reached`]
      : [];
  const [stream, clocks] = await Promise.all([
    ofStream(first.link, options, service.integration).catch((error: unknown) => [reasonOf(error)]),
    ofClocks(first.link, service.integration, runtime, signal),
  ]);
  const rest = "sync_interval cannot be read; the service is not asked: the agents share its rate";
  return [...versions, ...failed, ...placed, ...stream, ...clocks, rest].join("; ");
}

/** The agents whose clocks differ from that of this machine. */
async function ofClocks(link: NatsLink, integration: string, { clock }: Runtime, signal: AbortSignal) {
  const aheadMs = new Map<string, number>();
  const take = (data: Uint8Array) => {
    const { node, time = clock.now() } = readHeartbeat(data) ?? {};
    if (node !== undefined) aheadMs.set(node, (time - clock.now()) / 1_000);
  };
  const stop = AbortSignal.any([signal, AbortSignal.timeout(listenMs)]);
  await natsHeartbeats(link, integration, clock).listen(take, stop);
  signal.throwIfAborted();
  return [...aheadMs].flatMap(([node, ms]) => clockRemark(`the clock of ${node}`, ms, toleratedMs));
}

function clockRemark(which: string, aheadMs: number, tolerated: number): readonly string[] {
  if (Math.abs(aheadMs) <= tolerated) return [];
  const seconds = Math.round(Math.abs(aheadMs) / 1_000);
  return [`${which} is ${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`];
}

async function ofStream(link: NatsLink, options: ClusterOptions, integration: string): Promise<readonly string[]> {
  const askedAt = Date.now();
  const state = await natsStream(link, options, integration).state();
  if (!state) return [];
  const { replicas, replicasInPlace, maxBytes, answeredAt } = state;
  const transitMs = Date.now() - askedAt;
  const aheadMs = answeredAt === undefined ? 0 : answeredAt - askedAt - transitMs / 2;
  return [
    `the stream has ${replicasInPlace} of ${replicas} replicas in place`,
    ...(replicas === options.replicas ? [] : [`replicas is ${options.replicas} here`]),
    ...(maxBytes === options.maxSize
      ? []
      : [`maxSize is ${formatByteSize(maxBytes)} there and ${formatByteSize(options.maxSize)} here`]),
    ...clockRemark("the clock of the server", aheadMs, toleratedMs + transitMs),
  ];
}
