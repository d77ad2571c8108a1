// Safeguards of OPC UA: every message of the server is processed once and in order, and acknowledged once it is on
// disk.
import type { Ablation } from "./ablation.ts";

const sequence = "unit/source/opcua/sequence.test.ts";
const positions = "unit/source/opcua/positions.test.ts";
const missing = "unit/source/opcua/missing-messages.test.ts";
const publisher = "unit/source/opcua/publisher.test.ts";

export const opcuaAblations: readonly Ablation[] = [
  {
    safeguard: "requesting missing messages",
    file: "source/opcua/publishing/missing-messages.ts",
    code: "new Set([...(between ?? []),",
    without: "new Set([",
    test: sequence,
  },
  {
    safeguard: "skipping a message that was already processed",
    file: "source/opcua/publishing/missing-messages.ts",
    code: "const known = !keepAlive && !this.#lost.delete(sequenceNumber);",
    without: "const known = false;",
    test: sequence,
  },
  {
    safeguard: "storing a message that arrives after it was given up",
    file: "source/opcua/publishing/missing-messages.ts",
    code: "!keepAlive && !this.#lost.delete(sequenceNumber)",
    without: "!keepAlive",
    test: sequence,
  },
  {
    safeguard: "reporting the values of a notification that cannot be decoded",
    file: "source/opcua/publishing/publisher.ts",
    code: "    if (undecoded === undefined) return;\n",
    without: "    if (undecoded !== null) return;\n",
    test: publisher,
  },
  {
    safeguard: "accepting a server that restarts its sequence numbers",
    file: "source/opcua/publishing/missing-messages.ts",
    code: "const renumbered = awaitingFirst && !keepAlive && this.isOld(sequenceNumber);",
    without: "const renumbered = false;",
    test: sequence,
  },
  {
    safeguard: "requesting messages that the server has kept from before",
    file: "source/opcua/publishing/missing-messages.ts",
    code: "...(awaitingFirst || !between ? kept : [])",
    without: "",
    test: sequence,
  },
  {
    safeguard: "wrapping the sequence numbers to 1",
    file: "source/opcua/publishing/missing-messages.ts",
    code: "return number === last ? 1 : number + 1;",
    without: "return number + 1;",
    test: sequence,
  },
  {
    safeguard: "keeping a position from moving back",
    file: "source/opcua/publishing/positions.ts",
    code: "      if (before !== undefined && !behind(before, following)) return;\n",
    without: "",
    test: positions,
  },
  {
    safeguard: "writing a position before the acknowledgement",
    file: "source/opcua/publishing/positions.ts",
    code: "      next.set(key, following);\n      await write();",
    without: "      next.set(key, following);\n",
    test: positions,
  },
  {
    safeguard: "distinguishing subscriptions of a restarted server",
    file: "source/opcua/publishing/positions.ts",
    code: "return `${id} ${started}`;",
    without: "return `${id}`;",
    test: positions,
  },
  {
    safeguard: "writing the positions before closing",
    file: "source/opcua/session/state-files.ts",
    code: "    writing = waiting.catch(() => {});\n",
    without: "",
    test: positions,
  },
  {
    safeguard: "reopening a positions file that was replaced",
    file: "source/opcua/session/state-files.ts",
    code: "before && isSame(before.stats, statSync(path, { throwIfNoEntry: false }))",
    without: "before",
    test: positions,
  },
  {
    safeguard: "starting a new subscription at message 1",
    file: "source/opcua/publishing/positions.ts",
    code: "    for (const subscription of fresh) next.set(keyOf(subscription), 1);\n",
    without: "",
    test: positions,
  },
  {
    safeguard: "reporting a message that the server has not kept as lost",
    file: "source/opcua/publishing/missing-messages.ts",
    code: "      if (!lostBefore) this.#options.lost(id);\n",
    without: "",
    test: missing,
  },
  {
    safeguard: "excluding messages that another agent has acknowledged from the losses",
    file: "source/opcua/publishing/missing-messages.ts",
    code: '      if (found === "gone" && mayBeStored) continue;\n',
    without: "",
    test: missing,
  },
  {
    safeguard: "reporting a missing message after one that the server has kept as lost",
    file: "source/opcua/publishing/missing-messages.ts",
    code: "        mayBeStored &&= tracker?.isOld(sequenceNumber) === true;\n",
    without: "",
    test: missing,
  },
  {
    safeguard: "limiting messages on another agent's disk to the first ones after a takeover",
    file: "source/opcua/publishing/missing-messages.ts",
    code: "    const lags = this.#lags;\n    this.#lags = false;\n",
    without: "    const lags = this.#lags;\n",
    test: sequence,
  },
  {
    safeguard: "treating positions as exact once this agent has stored a message",
    file: "source/opcua/publishing/positions.ts",
    code: "      lagging.delete(key);\n      next.set(key, following);\n",
    without: "      next.set(key, following);\n",
    test: positions,
  },
  {
    safeguard: "fetching the last message of a former subscription",
    file: "source/opcua/publishing/missing-messages.ts",
    code: "known ? missing : [...missing, last]",
    without: "missing",
    test: missing,
  },
  {
    safeguard: "marking fetched messages as processed",
    file: "source/opcua/publishing/missing-messages.ts",
    code: "    tracker.fetched();\n",
    without: '    if (this.#options.trackers.size > 1) tracker.fetched();\n    else return "none";\n',
    test: missing,
  },
  {
    safeguard: "keeping a former subscription until its messages are on disk",
    file: "source/opcua/publishing/missing-messages.ts",
    code: "this.#ended && this.#open.size === 0",
    without: "this.#ended",
    test: missing,
  },
  {
    safeguard: "repeating an acknowledgement whose request failed",
    file: "source/opcua/publishing/publisher.ts",
    code: "      this.#acknowledged.unshift(...acknowledged);\n",
    without: "",
    test: publisher,
  },
  {
    safeguard: "decoding structures only in the Binary encoding",
    file: "source/opcua/types/structure.ts",
    code: "encoding === 1 ? { nodeId,",
    without: "encoding > 0 ? { nodeId,",
    test: "unit/source/opcua/structure.test.ts",
    name: "only the Binary encoding",
  },
];
