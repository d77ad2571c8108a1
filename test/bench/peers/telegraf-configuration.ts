// Telegraf's configuration for a plant of the bench: a memory buffer, and a write each second and whenever a batch is
// full.
// It allows as many messages in flight as the rate requires, because it acknowledges a message only after the output
// has it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { integration, password } from "../../support/service.ts";
import type { Setting } from "./setting.ts";

export function telegrafConfiguration(setting: Setting, output: "lines" | "service"): string {
  const { mqtt, modbus, opcua, backlog } = setting.plant;
  const inputs: string[] = [];
  if (mqtt)
    inputs.push(`[[inputs.mqtt_consumer]]
servers = ["tcp://127.0.0.1:${mqtt.port}"]
topics = ["plant/+/+"]
qos = 1
max_undelivered_messages = ${backlog}
persistent_session = true
client_id = "telegraf"
username = "${mqtt.username}"
password = "${mqtt.password}"
data_format = "json"
json_time_key = "ts"
json_time_format = "unix_ms"
name_override = "mqtt"
fieldinclude = ["v"]`);
  for (const [i, url] of (modbus?.urls ?? []).entries())
    inputs.push(`[[inputs.modbus]]
name = "m${i}"
interval = "${modbus?.everySeconds}s"
controller = "${url}"
timeout = "1s"
configuration_type = "request"
[[inputs.modbus.request]]
slave_id = 1
byte_order = "ABCD"
register = "holding"
fields = [${list(modbus?.registers ?? 0, (n) => `{ address=${n}, name="r${n}", type="UINT16" }`)}]`);
  if (opcua)
    inputs.push(`[[inputs.opcua_listener]]
name = "opcua"
endpoint = "${opcua.url}"
connect_fail_behavior = "retry"
security_policy = "None"
security_mode = "None"
subscription_interval = "1s"
timestamp = "source"
fieldexclude = ["Quality"]
${Array.from({ length: opcua.items }, (_, i) => opcuaNode(i, opcua.everySeconds)).join("\n")}`);
  return `[agent]
interval = "1s"
flush_interval = "1s"
metric_batch_size = 1000
metric_buffer_limit = ${2 * backlog}
omit_hostname = true
quiet = true

${output === "lines" ? lines(setting) : service(setting)}
${inputs.join("\n")}
`;
}

function opcuaNode(i: number, everySeconds: number): string {
  return `[[inputs.opcua_listener.nodes]]
name = "o${i}"
namespace = "2"
identifier_type = "s"
identifier = "V${i}"
[inputs.opcua_listener.nodes.monitoring_params]
sampling_interval = "${everySeconds}s"`;
}

function lines({ sinkUrl }: Setting): string {
  return `[[outputs.http]]\nurl = "${sinkUrl}/lines"\ndata_format = "json"`;
}

function service({ sinkUrl, home }: Setting): string {
  const file = join(home, "credentials.json");
  const credentials = { type: "basic-auth", clientId: integration, clientSecret: password };
  writeFileSync(file, JSON.stringify({ apiUrl: `${sinkUrl}/v1`, integration, credentials }));
  return `[[outputs.clarify]]\ncredentials_file = "${file}"\nid_tags = ["topic", "name"]`;
}

function list(many: number, field: (i: number) => string): string {
  return Array.from({ length: many }, (_, i) => field(i)).join(", ");
}
