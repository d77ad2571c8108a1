// The MQTT driver: its options, its tags, and the way to a connection.
import type { Driver } from "../../core/source.ts";
import { mqttOptions } from "./options.ts";
import { mqttTag } from "./tag.ts";
import { tagCaptures } from "./tag-address.ts";

/** MQTT 5, 3.1.1 and 3.1 over TCP, TLS and WebSockets. The client library is loaded by `open`. */
export const mqttDriver: Driver<"mqtt", typeof mqttOptions, typeof mqttTag> = {
  type: "mqtt",
  summary: "messages of an MQTT broker, acknowledged after they are on disk",
  schema: mqttOptions,
  tag: mqttTag,
  schemes: ["mqtt", "mqtts", "ws", "wss"],
  captures: tagCaptures,
  async open(config, runtime, signal) {
    const { openMqttSource } = await import("./source.ts");
    return await openMqttSource(config, runtime, signal);
  },
  async *browse(target, runtime, signal) {
    const { browseBroker } = await import("./browse.ts");
    yield* browseBroker(target, runtime, signal);
  },
};
