// The safeguards of all parts.
import type { Ablation } from "./ablation.ts";
import { agentAblations } from "./agent.ts";
import { bufferAblations } from "./buffer.ts";
import { bufferAccountAblations } from "./buffer-counters.ts";
import { bufferDamageAblations } from "./buffer-damage.ts";
import { clusterAblations } from "./cluster.ts";
import { discoverAblations } from "./discover.ts";
import { gapAblations } from "./gaps.ts";
import { mappingAblations } from "./mapping.ts";
import { modbusAblations } from "./modbus.ts";
import { mqttAblations } from "./mqtt.ts";
import { mqttFirstContactAblations } from "./mqtt-first-contact.ts";
import { opcuaAblations } from "./opcua.ts";
import { orderAblations } from "./order.ts";
import { serviceAblations } from "./service.ts";
import { streamAblations } from "./stream.ts";
import { uploadAblations } from "./upload.ts";

export const ablations: readonly Ablation[] = [
  ...agentAblations,
  ...gapAblations,
  ...clusterAblations,
  ...streamAblations,
  ...mappingAblations,
  ...modbusAblations,
  ...mqttAblations,
  ...mqttFirstContactAblations,
  ...opcuaAblations,
  ...serviceAblations,
  ...uploadAblations,
  ...discoverAblations,
  ...orderAblations,
  ...bufferAblations,
  ...bufferDamageAblations,
  ...bufferAccountAblations,
];
