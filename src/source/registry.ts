// All protocols. Configuration, reference, schema, `check` and the agent use this list.
import type { Driver } from "../core/driver.ts";
import { modbusDriver } from "./modbus/driver.ts";
import { mqttDriver } from "./mqtt/driver.ts";
import { opcuaDriver } from "./opcua/driver.ts";
import { simulatorDriver } from "./simulator/driver.ts";

export const drivers: readonly Driver[] = [mqttDriver, modbusDriver, opcuaDriver, simulatorDriver];
