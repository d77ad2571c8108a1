// The MQTT driver.
import type { Driver } from "../../core/driver.ts";
import { positionRemarks, topicAmbiguity, topicOverlaps } from "./config/input-ids.ts";
import { claimedSessions, clientIdOf, connectionFindings, connectionWarnings, mqttOptions } from "./config/options.ts";
import { mqttTag } from "./config/tag.ts";
import { tagCaptures } from "./config/tag-address.ts";
import { rangeRemarks } from "./decoders/quality.ts";

/** Supports MQTT 5, 3.1.1 and 3.1 over TCP, TLS and WebSockets. `open` loads the client library. */
export const mqttDriver: Driver<"mqtt", typeof mqttOptions, typeof mqttTag> = {
  type: "mqtt",
  summary: "messages of an MQTT broker, acknowledged after they are on disk",
  silence: "what the broker has kept counts only if it carries a time of its own, or with retained: use",
  example: {
    protocol: "MQTT",
    device: "an MQTT broker",
    addresses: ["mqtt://host:1883"],
    entries: ['- { input: "hall.{room}.temp", topic: "sensors/{room}/env", value: "$.t", signal: { engUnit: °C } }'],
  },
  schema: mqttOptions,
  tag: mqttTag,
  schemes: ["mqtt", "mqtts", "ws", "wss"],
  captures: tagCaptures,
  ambiguity: topicAmbiguity,
  overlaps: topicOverlaps,
  remarks: (tag, names) => [...positionRemarks(tag, names), ...rangeRemarks(tag)],
  warnings: connectionWarnings,
  findings: connectionFindings,
  claims: claimedSessions,
  async open(config, runtime, signal) {
    const { openMqttSource } = await import("./receiver/source.ts");
    return await openMqttSource(config, runtime, signal);
  },
  async shadow(config, stateDir) {
    const { options } = config;
    const clientId = `${clientIdOf(options, { agent: config.agent, source: config.name })}-probe-${process.pid}`;
    const session = { ...options.session, persistent: false };
    // As a member of a shared subscription, the shadow source would take messages from the other members.
    const tags = config.tags.map((tag) => {
      const filter = tag.topic.filter.replace(/^\$share\/[^/]+\//, "");
      return { ...tag, topic: { ...tag.topic, filter } };
    });
    return { ...config, stateDir, tags, options: { ...options, clientId, session, qos: 0, requestRebirth: false } };
  },
  async listen(target, runtime, signal) {
    const { listenToBroker } = await import("./discovery/browse.ts");
    return await listenToBroker(target, runtime, signal);
  },
  async *browse(target, runtime, signal) {
    const { browseBroker } = await import("./discovery/browse.ts");
    yield* browseBroker(target, runtime, signal);
  },
};
