// The protocol Modbus as the rest of the agent knows it.
import { AgentError } from "../../core/errors.ts";
import type { Driver } from "../../core/source.ts";
import { modbusOptions, modbusTag } from "./options.ts";

export const modbusDriver: Driver<"modbus", typeof modbusOptions, typeof modbusTag> = {
  type: "modbus",
  summary: "reads registers and bits from Modbus devices; never writes",
  schema: modbusOptions,
  tag: modbusTag,
  device: ["unit", "order", "nullValues", "timeout", "maxRegisters"],
  open: () => Promise.reject(new AgentError("SOURCE_PROTOCOL", "reading is not built yet")),
};
