// Real MQTT, Modbus and OPC UA servers on loopback ports, with a record of every delivered value.
import { AgentError, codeOf } from "../core/errors.ts";
import type { InputId } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import { DeliveredRecord, type DeliveredValues } from "./comparison.ts";
import { openModbusDevice } from "./modbus-device.ts";
import { mqttLogin, openMqttDevice } from "./mqtt-device.ts";
import { openOpcuaDevice } from "./opcua-device.ts";

interface DemoDevicesOptions {
  /** Number of tags of each device, rounded up to whole rooms (2 tags) and meters (7 tags). */
  readonly tags: { readonly mqtt: number; readonly modbus: number; readonly opcua: number };
  /** Milliseconds between two values of a tag; at least 100. */
  readonly everyMs: number;
}

type DeviceName = "mqtt" | "modbus" | "opcua";

export interface DemoDevices extends AsyncDisposable {
  readonly inputs: readonly InputId[];
  readonly urls: { readonly mqtt: string; readonly modbus: string; readonly opcua: string };
  /** Credentials for the broker. The other devices require none. */
  readonly logins: { readonly mqtt: { readonly username: string; readonly password: string } };
  /** The `templates:` and `sources:` that read every tag, to append to `version`, `agent` and `service`. */
  readonly configuration: string;
  /** The same for some of the devices. */
  readonly configurationOf: (...devices: readonly DeviceName[]) => string;
  /** Number of distinct (input, value) pairs delivered so far. */
  readonly count: number;
  /** The pairs delivered so far; complete once `stop` has resolved. */
  delivered(): DeliveredValues;
  /**
   * Stops delivering but keeps answering. Resolves a second after the agent has taken everything, as far as the
   * protocols show it, so the agent must still read. Rejects with `signal.reason`.
   */
  stop(signal: AbortSignal): Promise<void>;
}

/** Time for received deliveries to reach the disk. */
const settleMs = 1_000;

/** Rejects with `signal.reason`, or with `PACKAGE_MISSING` if development dependencies are not installed. */
export async function openDevices(
  options: DemoDevicesOptions,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<DemoDevices> {
  await using opening = new AsyncDisposableStack();
  const record = new DeliveredRecord();
  await requirePackages();
  const { tags, everyMs } = options;
  const mqtt = opening.use(await openMqttDevice({ tags: tags.mqtt, everyMs, record }, runtime, signal));
  const modbus = opening.use(await openModbusDevice({ tags: tags.modbus, everyMs, record }, runtime, signal));
  const opcua = opening.use(await openOpcuaDevice({ tags: tags.opcua, everyMs, record }, runtime, signal));
  const devices = { mqtt, modbus, opcua };
  const all = Object.values(devices);
  const configurationOf = (...names: readonly DeviceName[]) => {
    const configurations = names.map((name) => devices[name].configuration);
    const templates = configurations.flatMap((each) => each.templates ?? []);
    const sources = configurations.map(({ source }) => source);
    return `${templates.length > 0 ? `templates:\n${templates.join("")}` : ""}sources:\n${sources.join("")}`;
  };
  const owned = opening.move();
  return {
    inputs: all.flatMap((device) => device.inputs),
    urls: { mqtt: mqtt.url, modbus: modbus.url, opcua: opcua.url },
    logins: { mqtt: mqttLogin },
    configuration: configurationOf("mqtt", "modbus", "opcua"),
    configurationOf,
    get count() {
      return record.count;
    },
    delivered: () => record.values,
    async stop(stopSignal) {
      await Promise.all(all.map((device) => device.stop(stopSignal)));
      await runtime.clock.sleep(settleMs, stopSignal);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Development dependencies, which only the repository has. */
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
      if (codeOf(error) !== "ERR_MODULE_NOT_FOUND") throw error;
      missing.push(name);
    }
  }
  if (missing.length > 0)
    throw new AgentError(
      "PACKAGE_MISSING",
      `the simulated devices need packages that are not installed: npm install ${missing.join(" ")}`,
    );
}
