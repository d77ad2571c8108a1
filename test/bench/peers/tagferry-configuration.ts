// tagferry's configuration for a plant of the bench. Everything that the plant does not need has its default value.
import { integration, password } from "../../support/service.ts";
import type { Setting } from "./setting.ts";

export function tagferryConfiguration({ plant, sinkUrl, data }: Setting): string {
  const { mqtt, modbus, opcua } = plant;
  const sources: string[] = [];
  if (mqtt)
    sources.push(`  mqtt:
    type: mqtt
    url: mqtt://127.0.0.1:${mqtt.port}
    username: ${mqtt.username}
    password: ${mqtt.password}
    tags:
      - { input: "mqtt.{line}.{tag}", topic: "plant/{line}/{tag}", value: $.v, time: { at: $.ts, format: unixMs } }`);
  for (const [i, url] of (modbus?.urls ?? []).entries())
    sources.push(`  modbus${i}:
    type: modbus
    url: ${url}
    every: ${modbus?.everySeconds}s
    devices: [{ unit: 1, template: registers, vars: { dev: m${i} } }]`);
  if (opcua)
    sources.push(`  opcua:
    type: opcua
    url: ${opcua.url}
    security: { mode: none }
    every: ${opcua.everySeconds}s
    tags:
${list(opcua.items, (i) => `{ input: "o${i}", node: "nsu=urn:tagferry:bench;s=V${i}" }`)}`);
  return `version: 1
agent: { name: bench, dataDir: ${JSON.stringify(data)} }
service: { url: "${sinkUrl}/v1", integration: ${integration}, auth: { basic: { password: "${password}" } }, signals: { check: off } }
http: { listen: "127.0.0.1:0" }
${modbus ? `templates:\n  registers:\n${list(modbus.registers, (i) => `{ input: "{dev}.r${i}", at: "hr:${i} u16" }`)}\n` : ""}sources:
${sources.join("\n")}
`;
}

function list(many: number, tag: (i: number) => string): string {
  return Array.from({ length: many }, (_, i) => `      - ${tag(i)}`).join("\n");
}
