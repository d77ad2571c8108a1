// Safeguards of MQTT: a message is acknowledged once, in the order of arrival, on its own connection, and after it is
// on disk.
import type { Ablation } from "./ablation.ts";

const queue = "unit/source/mqtt/receive-queue.test.ts";
const acknowledgement = "integration/mqtt/acknowledgement.test.ts";
const oversize = "unit/source/mqtt/packet-reader.test.ts";
const oversized = "integration/mqtt/oversized.test.ts";
const backPressure = "integration/mqtt/back-pressure.test.ts";

export const mqttAblations: readonly Ablation[] = [
  {
    safeguard: "reading one of the copies that a broker sends for overlapping filters",
    file: "source/mqtt/receiver/message-reader.ts",
    code: "return group.filter(({ id }) => copies.isFor(id, subscriptions));",
    without: "return group;",
    test: "integration/mqtt/overlapping-filters.test.ts",
  },
  {
    safeguard: "requesting again what was not answered",
    file: "source/mqtt/connection/subscriptions.ts",
    code: "[...all].filter((filter) => !granted.has(filter) && !before.has(filter))",
    without: "[]",
    test: "integration/mqtt/resumed-subscriptions.test.ts",
    name: "did not answer",
  },
  {
    safeguard: "acknowledging batches in order",
    file: "source/mqtt/receiver/receive-queue.ts",
    code: "unacknowledged.splice(0, pending < 0 ? unacknowledged.length : pending)",
    without: "unacknowledged.splice(unacknowledged.indexOf(batch), 1)",
    test: queue,
  },
  {
    safeguard: "acknowledging a message of several batches with the last one",
    file: "source/mqtt/receiver/receive-queue.ts",
    code: "      const before = batch.readings.length;\n      read(batch);\n",
    without:
      "      const before = batch.readings.length;\n      if (held !== undefined) batch.held.push(held);\n      held = undefined;\n      read(batch);\n",
    test: queue,
  },
  {
    safeguard: "delivering waiting messages when the connection is lost",
    file: "lib/flow/abort.ts",
    code: "      const taken = takeNow();\n      if (taken !== undefined) return taken;\n      if (this.#failure) throw this.#failure.error;",
    without:
      "      if (this.#failure) throw this.#failure.error;\n      const taken = takeNow();\n      if (taken !== undefined) return taken;",
    test: queue,
    message: "Error: lost",
  },
  {
    safeguard: "the bound of waiting messages",
    file: "source/mqtt/receiver/receive-queue.ts",
    code: "return second !== undefined || (first !== undefined && isFull(first));",
    without: "return false;",
    test: queue,
  },
  {
    safeguard: "delaying the acknowledgement beyond the arrival",
    file: "source/mqtt/connection/client.ts",
    code: "(message) => handler.receive(message)",
    without:
      "(message) => handler.receive(message) && (message.held === undefined || client.stream.write(encodeAcknowledgements([message.held])))",
    test: acknowledgement,
    name: "no message is acknowledged",
  },
  {
    safeguard: "confirming QoS 2 with PUBREC",
    file: "source/mqtt/connection/client.ts",
    code: "packet >= exactlyOnce ? 0x50 : 0x40",
    without: "0x40",
    test: acknowledgement,
    name: "QoS 2",
    message: "timed out",
  },
  {
    safeguard: "acknowledging a message without a matching tag",
    file: "source/mqtt/receiver/receive-queue.ts",
    code: "      waiting.shift();\n      release(first);\n",
    without: "      waiting.shift();\n",
    test: acknowledgement,
    name: "a message without a",
  },
  {
    safeguard: "discarding a payload that is too large",
    file: "source/mqtt/connection/packet-reader.ts",
    code: "end - body > maxPayload || ",
    without: "",
    test: oversize,
  },
  {
    safeguard: "acknowledging an oversized message in its order",
    file: "source/mqtt/connection/packet-reader.ts",
    code: "if (toDiscard === 0) deliver(skipped);",
    without: "if (toDiscard === 0) skipped = undefined;",
    test: oversize,
  },
  {
    safeguard: "limiting the size of properties",
    file: "source/mqtt/connection/packet-reader.ts",
    code: " || body - cursor > maxProperties",
    without: "",
    test: oversize,
  },
  {
    safeguard: "keeping messages from the library",
    file: "source/mqtt/connection/client.ts",
    code: "      parser._write = (chunk: Buffer, _encoding, done) => own.write(chunk, done);\n",
    without: "",
    test: oversized,
    message: "timed out",
  },
  {
    safeguard: "avoiding recursion for each packet of the library",
    file: "source/mqtt/connection/packet-reader.ts",
    code: "    if (isReading) return;\n",
    without: "",
    test: oversize,
    name: "without nesting",
    message: "Maximum call stack",
  },
  {
    safeguard: "pausing the socket while no message is consumed",
    file: "source/mqtt/connection/packet-reader.ts",
    code: "stalled = !receive(message);",
    without: "receive(message);",
    test: backPressure,
    name: "at most 10,000 readings",
  },
  {
    safeguard: "delivering received messages at a stop",
    file: "source/mqtt/receiver/message-receiver.ts",
    code: "      for (let batch = queue.takeNow(); batch; batch = queue.takeNow()) yield deliveryOf(batch);\n",
    without: "",
    test: backPressure,
    name: "messages that arrived while",
  },
  {
    safeguard: "a member of a template keeps its datatype, so that negative numbers stay negative",
    file: "source/mqtt/sparkplug/edge-node.ts",
    code: "given ?? known?.datatype ?? 0",
    without: "given ?? 0",
    test: "unit/source/mqtt/sparkplug.test.ts",
    name: "members of a template",
  },
  {
    safeguard: "a value of a template in the past is no present value",
    file: "source/mqtt/sparkplug/metric-readings.ts",
    code: "member.isHistorical || metric.isHistorical",
    without: "member.isHistorical",
    test: "unit/source/mqtt/sparkplug.test.ts",
    name: "members of a template",
  },
  {
    safeguard: "reading live local times of the second hour as such when the clocks go back",
    file: "source/mqtt/decoders/payload-time.ts",
    code: "zone.fromLocal(local, now + clockDifferenceUs)",
    without: "zone.fromLocal(local)",
    test: "unit/source/mqtt/payload-time.test.ts",
    name: "as the clocks go back",
  },
  {
    safeguard: "keeping the aliases of the devices of a Sparkplug node apart",
    file: "source/mqtt/sparkplug/edge-node.ts",
    code: "const aliases = this.#byAlias.get(device) ?? new",
    without: "const aliases = [...this.#byAlias.values()][0] ?? new",
    test: "unit/source/mqtt/sparkplug.test.ts",
    name: "use the same aliases",
  },
  {
    safeguard: "failing no input for a Sparkplug template or array, which could never recover",
    file: "source/mqtt/sparkplug/metric-readings.ts",
    code: "datatype >= templateType || !wants(route, known)",
    without: "!wants(route, known)",
    test: "unit/source/mqtt/sparkplug.test.ts",
    name: "whose inputs would never recover",
  },
];
