// The devices of `tagferry demo`: an MQTT broker, a Modbus device and an OPC UA server that really listen on loopback
// ports, and a record of every value they gave away.
import { AgentError } from "../core/errors.ts";
import type { InputId } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import { type HandedOut, HandedOutRecord } from "./comparison.ts";
import { openModbusDevice } from "./modbus-device.ts";
import { mqttLogin, openMqttDevice } from "./mqtt-device.ts";
import { openOpcuaDevice } from "./opcua-device.ts";

interface DemoDevicesOptions {
  /** How many tags each device has, rounded up to whole rooms (2 tags) and meters (7 tags). */
  readonly tags: { readonly mqtt: number; readonly modbus: number; readonly opcua: number };
  /** Milliseconds between two values of a tag. From 100. */
  readonly everyMs: number;
}

export interface DemoDevices extends AsyncDisposable {
  /** Every Input ID the configuration maps a tag to. */
  readonly inputs: readonly InputId[];
  readonly urls: { readonly mqtt: string; readonly modbus: string; readonly opcua: string };
  /** User name and password at the broker. The other devices require none. */
  readonly logins: { readonly mqtt: { readonly username: string; readonly password: string } };
  /** The `templates:` and `sources:` of a configuration that reads every tag; append it to `version`, `agent`, `service`. */
  readonly configuration: string;
  /** Number of distinct (input, value) pairs that were delivered so far. */
  readonly count: number;
  /** The pairs that were delivered so far; complete once `stop` has resolved. */
  handedOut(): HandedOut;
  /**
   * Hands out nothing more; the devices go on answering until they are disposed. Call it while the agent still reads:
   * it resolves once the agent took everything, as far as the protocols tell, and a second more for what they do not
   * tell. Rejects with `signal.reason`.
   */
  stop(signal: AbortSignal): Promise<void>;
}

/** Long enough for a delivery that was taken off the wire to reach the disk. */
const settleMs = 1_000;

/**
 * Resolves when all three devices listen. Rejects with `PACKAGE_MISSING`, naming the packages to install, where the
 * broker or the server is not there (they are development dependencies), or with `signal.reason`.
 */
export async function openDevices(
  options: DemoDevicesOptions,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<DemoDevices> {
  await using opening = new AsyncDisposableStack();
  const record = new HandedOutRecord();
  await requirePackages();
  const { tags, everyMs } = options;
  const mqtt = opening.use(await openMqttDevice({ tags: tags.mqtt, everyMs, record }, runtime, signal));
  const modbus = opening.use(await openModbusDevice({ tags: tags.modbus, everyMs, record }, runtime, signal));
  const opcua = opening.use(await openOpcuaDevice({ tags: tags.opcua, everyMs, record }, runtime, signal));
  const all = [mqtt, modbus, opcua];
  const templates = all.flatMap((device) => device.configuration.templates ?? []);
  const sources = all.map((device) => device.configuration.source);
  const owned = opening.move();
  return {
    inputs: all.flatMap((device) => device.inputs),
    urls: { mqtt: mqtt.url, modbus: modbus.url, opcua: opcua.url },
    logins: { mqtt: mqttLogin },
    configuration: `templates:\n${templates.join("")}sources:\n${sources.join("")}`,
    get count() {
      return record.count;
    },
    handedOut: () => record.values,
    async stop(stopSignal) {
      await Promise.all(all.map((device) => device.stop(stopSignal)));
      await runtime.clock.sleep(settleMs, stopSignal);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The packages that only the repository has. */
const packages: Readonly<Record<string, () => Promise<unknown>>> = {
  aedes: () => import("aedes"),
  "node-opcua-server": () => import("node-opcua-server"),
  "node-opcua-client": () => import("node-opcua-client"),
  "node-opcua-certificate-manager": () => import("node-opcua-certificate-manager"),
};

async function requirePackages(): Promise<void> {
  const missing: string[] = [];
  for (const [name, load] of Object.entries(packages)) {
    try {
      await load();
    } catch (error) {
      if (!isMissing(error)) throw error;
      missing.push(name);
    }
  }
  if (missing.length > 0)
    throw new AgentError(
      "PACKAGE_MISSING",
      `the simulated devices need packages that are not installed: npm install ${missing.join(" ")}`,
    );
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
}
