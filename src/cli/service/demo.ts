// `tagferry demo`: devices, agent and service on this machine, with an outage and a final comparison.
import { randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Agent, openAgent } from "../../agent/agent.ts";
import { loadConfig } from "../../config/load.ts";
import type { DemoDevices } from "../../demo/devices.ts";
import { waitUntil } from "../../lib/flow/repeat.ts";
import type { Service } from "../../service/service.ts";
import { openPage } from "../run/serve.ts";
import type { Console } from "../terminal/console.ts";
import type { ExitStatus } from "../terminal/exit-status.ts";
import { typedAs, version } from "../terminal/version.ts";
import {
  compareAfter,
  type Demo,
  type DemoOptions,
  openDemo,
  serviceSection,
  signIn,
  withAnyPort,
} from "./demo-parts.ts";

const drain = { withinMs: 120_000, everyMs: 100 };

export async function demo(options: DemoOptions, given: Console): Promise<ExitStatus> {
  if (options.cluster) return await (await import("./cluster-demo.ts")).clusterDemo(options, given);
  const { duration, keep } = options;
  await using parts = new AsyncDisposableStack();
  const what = "an MQTT broker, a Modbus TCP device, an OPC UA server, the local service and the agent";
  const running = await openDemo(given, keep, what, parts);
  const { io, folder, log, metrics, runtime, service, devices } = running;
  const file = join(folder, "tagferry.yaml");
  const token = randomBytes(12).toString("base64url");
  // For tags that are added on the page.
  await mkdir(join(folder, "conf.d"), { recursive: true });
  await writeFile(file, configuration(folder, token, service, devices));
  const config = await loadConfig(file, io.environment);
  const agentScope = parts.use(new AsyncDisposableStack());
  const agent = agentScope.use(await openAgent(config, { version: version() }, runtime, io.signal));
  // The final comparison holds only if nothing but the agent reads the devices.
  const addsTags = duration === undefined;
  const ready = () => ({ ok: true });
  const page = parts.use(
    await withAnyPort(8421, (port) =>
      openPage(
        { file, config, log, metrics, agent, ready, addsTags, listen: { host: "127.0.0.1", port } },
        runtime,
        io,
      ),
    ),
  );
  introduce(io, service, devices, page.url, token, file);

  return await compareAfter(async () => {
    const outage = await watch({ ...running, agent, duration });
    await devices.stop(io.signal);
    const isDrained = () => agent.status().buffer.unsettledPoints === 0;
    if (!isDrained()) io.print("waiting until what is on disk is delivered …");
    await waitUntil(isDrained, drain, runtime.clock, io.signal);
    await agentScope.disposeAsync();
    return outage;
  }, running);
}

/** The configuration that a user would write for the devices of the demo. */
function configuration(folder: string, token: string, service: Service, devices: DemoDevices): string {
  return `version: 1
include: conf.d/*.yaml
agent:
  name: demo
  # The agent's own signals come from no device.
  ownSignals: off
  dataDir: ${JSON.stringify(join(folder, "agent"))}
http: { token: "\${DEMO_TOKEN:-${token}}" }
${serviceSection(service)}
${devices.configuration}`;
}

function introduce(
  io: Console,
  service: Service,
  devices: DemoDevices,
  page: string,
  token: string,
  file: string,
): void {
  const { mqtt } = devices.logins;
  const typed = typedAs(io.environment.variables);
  io.print(`
  MQTT broker      ${devices.urls.mqtt}   (user ${mqtt.username}, password ${mqtt.password})
  Modbus device    ${devices.urls.modbus}
  OPC UA server    ${devices.urls.opcua}
  configuration    ${file}
  status page      ${page}   (token for tags, configuration and log: ${token})
  timeline page    ${service.pageUrl}   ${signIn}

  From another terminal: ${typed} status --url ${page}
                         ${typed} browse ${devices.urls.opcua}
`);
}

const outageMs = 5_000;
/** The outage begins after this share of the duration, or after 20 s if the duration is unlimited. */
const outageAt = 0.35;
const outageAfterMs = 20_000;

interface Watched extends Demo {
  readonly agent: Agent;
  readonly duration: number | undefined;
}

/** Prints a line a second and runs the outage. Resolves with the length of the outage in milliseconds. */
async function watch(watched: Watched): Promise<number> {
  const { devices, agent, io, runtime, duration } = watched;
  const started = runtime.clock.monotonic();
  let away = false;
  const over = outage(watched, (now) => {
    away = now;
  });
  // A signal ends both the outage and this loop; the loop throws the error.
  over.catch(() => {});
  for (let at = 1_000; ; at += 1_000) {
    const target = Math.min(at, duration ?? Number.POSITIVE_INFINITY);
    await runtime.clock.sleep(Math.max(0, started + target - runtime.clock.monotonic()), io.signal);
    io.print(summary(target, devices, agent, away));
    if (target === duration) return over;
  }
}

/** Cuts connections and refuses new ones for a while. Resolves with the length in milliseconds, rounded to seconds. */
async function outage({ service, io, runtime, duration }: Watched, isAway: (now: boolean) => void): Promise<number> {
  await runtime.clock.sleep(duration === undefined ? outageAfterMs : duration * outageAt, io.signal);
  io.print("      -- the service is switched off: it refuses every connection");
  await service.pause();
  isAway(true);
  const began = runtime.clock.monotonic();
  await runtime.clock.sleep(outageMs, io.signal);
  const lasted = runtime.clock.monotonic() - began;
  await service.resume();
  isAway(false);
  io.print("      -- the service is back; the agent notices within 2 s that it accepts connections");
  return Math.round(lasted / 1_000) * 1_000;
}

function summary(elapsedMs: number, devices: DemoDevices, agent: Agent, away: boolean): string {
  const { buffer, upload, sources } = agent.status();
  const online = sources.filter(({ state }) => state === "online").length;
  const lag = upload.lagMs === undefined ? "-" : `${(upload.lagMs / 1_000).toFixed(1)} s`;
  return [
    `${String(Math.round(elapsedMs / 1_000)).padStart(3)} s`,
    `sources ${online}/${sources.length}`,
    `produced ${String(devices.count).padStart(6)}`,
    `delivered ${String(upload.points).padStart(6)}`,
    `on disk ${String(buffer.unsettledPoints).padStart(5)}`,
    `requests ${String(upload.requests).padStart(4)}`,
    `lag ${lag}`,
    away ? "service away" : upload.state,
  ].join("  ");
}
