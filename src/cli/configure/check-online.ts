// The part of `tagferry check` that asks those whom the configuration names: the service, and each source.
import type { Warning } from "../../agent/status/status.ts";
import type { Config } from "../../config/config.ts";
import type { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { DeviceCheck } from "../../core/source.ts";
import { InputOwners } from "../../mapping/input-owners.ts";
import { serviceFailure } from "../../upload/client/method-caller.ts";
import { Pacer } from "../../upload/client/pacer.ts";
import { answerBytes } from "../../upload/client/rpc-client.ts";
import { runningTakeovers } from "../shared/agent-client.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import { openServiceClient } from "../shared/service-caller.ts";
import { openShadowSource, refusedAddresses } from "../shared/source-look.ts";
import { deviceFailure, type ExitStatus, exitStatus } from "../terminal/exit-status.ts";

export interface Reached {
  /** `service`, or the name of a source. */
  readonly what: string;
  readonly ok: boolean;
  readonly ms: number;
  readonly error?: string;
  readonly remedy?: string;
  /** What the device gives to consider although it answers. */
  readonly advice?: string;
  /** What each device behind the connection answered, where the protocol asks them one by one. */
  readonly devices?: readonly DeviceCheck[];
  /** Addresses whose values would not be stored, since another one feeds their Input ID. */
  readonly refused?: readonly Warning[];
  readonly exit: ExitStatus;
}

/** Time for one of them, in milliseconds: drivers have shorter ones of their own for what they wait for. */
const withinMs = 60_000;

/** Asks all of them side by side, polled devices for one value each. Nothing is stored or acknowledged. Rejects with `signal.reason` only. */
export function checkOnline(config: Config, signal: AbortSignal): Promise<readonly Reached[]> {
  const runtime = commandRuntime();
  const owners = new InputOwners();
  const takeovers = config.sources.some(({ driver }) => "claims" in driver)
    ? runningTakeovers(config, signal)
    : Promise.resolve(new Map<string, AgentError>());
  // ^C: where no source came so far that it was waited for.
  takeovers.catch(() => {});
  return Promise.all([
    reach("service", (stop) => reachService(config, runtime, stop), signal),
    ...config.sources.map((source) =>
      reach(
        source.name,
        async (stop) => {
          await using opened = await openShadowSource(source, config, runtime, stop);
          const { advice } = opened.details?.() ?? {};
          const refused = await refusedAddresses(source, opened, owners, runtime, stop);
          const devices = await opened.check?.(stop);
          const takeover = (await takeovers).get(source.name);
          if (takeover) throw takeover;
          return {
            ...(advice !== undefined && { advice: String(advice) }),
            ...(refused.length > 0 && { refused }),
            ...(devices && { devices }),
          };
        },
        signal,
      ),
    ),
  ]);
}

async function reach(
  what: string,
  ask: (signal: AbortSignal) => Promise<Pick<Reached, "advice" | "refused" | "devices"> | void>,
  signal: AbortSignal,
): Promise<Reached> {
  const started = performance.now();
  const elapsed = () => Math.round(performance.now() - started);
  try {
    const found = await ask(AbortSignal.any([signal, AbortSignal.timeout(withinMs)]));
    const isAway = found?.devices?.some(({ ok }) => !ok) ?? false;
    const exit = isAway ? exitStatus.unreachable : found?.refused ? exitStatus.failed : exitStatus.done;
    return { what, ok: exit === exitStatus.done, ms: elapsed(), ...found, exit };
  } catch (error) {
    signal.throwIfAborted();
    const { message, hint, exit } = deviceFailure(error);
    return { what, ok: false, ms: elapsed(), error: message, remedy: hint, exit };
  }
}

/** Saves no signals at all: what only the right credentials may do, and what changes nothing. */
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
  // The token of the last run was taken no longer: now with a new one.
  if (verdict.kind === "throttled" && verdict.retryAfterMs === 0) verdict = await pacer.run(call, signal);
  // Others may use up the permitted requests: the service is there all the same.
  if (verdict.kind !== "done" && verdict.kind !== "throttled") throw serviceFailure(service.url, verdict);
}
