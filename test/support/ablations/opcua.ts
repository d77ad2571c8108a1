// Safeguards of OPC UA: every message of the server is processed once and in order, and acknowledged once it is on
// disk.
import type { Ablation } from "./ablation.ts";

const sequence = "unit/source/opcua/sequence.test.ts";
const positions = "unit/source/opcua/positions.test.ts";
const missing = "unit/source/opcua/missing-messages.test.ts";
const publisher = "unit/source/opcua/publisher.test.ts";

export const opcuaAblations: readonly Ablation[] = [
  {
    safeguard: "missing messages are asked for",
    file: "source/opcua/monitoring/sequence.ts",
    code: "new Set([...(between ?? []),",
    without: "new Set([",
    test: sequence,
  },
  {
    safeguard: "a message that was had before is not had again",
    file: "source/opcua/monitoring/sequence.ts",
    code: "if (old && !anew) return { missing: [], known: !keepAlive, beyond: false, lags: false };",
    without: "if (old && !anew) return { missing: [], known: false, beyond: false, lags: false };",
    test: sequence,
  },
  {
    safeguard: "a server that counts anew is listened to",
    file: "source/opcua/monitoring/sequence.ts",
    code: "const anew = unheard && !keepAlive && this.isOld(sequenceNumber);",
    without: "const anew = false;",
    test: sequence,
  },
  {
    safeguard: "what the server still has from before is asked for",
    file: "source/opcua/monitoring/sequence.ts",
    code: "...(unheard || !between ? kept : [])",
    without: "",
    test: sequence,
  },
  {
    safeguard: "the wrap of the numbers",
    file: "source/opcua/monitoring/sequence.ts",
    code: "return number === last ? 1 : number + 1;",
    without: "return number + 1;",
    test: sequence,
  },
  {
    safeguard: "a position never goes back",
    file: "source/opcua/monitoring/positions.ts",
    code: "    if (before !== undefined && !behind(before, next)) return Promise.resolve();\n",
    without: "",
    test: positions,
  },
  {
    safeguard: "a position is written before the server is told",
    file: "source/opcua/monitoring/positions.ts",
    code: "    this.#next.set(key, next);\n    return this.#write();",
    without: "    this.#next.set(key, next);\n    return Promise.resolve();",
    test: positions,
  },
  {
    safeguard: "a server that started again has other subscriptions",
    file: "source/opcua/monitoring/positions.ts",
    code: "return `${id} ${started}`;",
    without: "return `${id}`;",
    test: positions,
  },
  {
    safeguard: "the end waits for the positions",
    file: "source/opcua/session/state-files.ts",
    code: "    this.#writing = waiting.catch(() => {});\n",
    without: "",
    test: positions,
  },
  {
    safeguard: "a file of positions that was replaced is opened again",
    file: "source/opcua/session/state-files.ts",
    code: "before && isSame(before.stats, statSync(this.#path, { throwIfNoEntry: false }))",
    without: "before",
    test: positions,
  },
  {
    safeguard: "a new subscription begins with message 1",
    file: "source/opcua/monitoring/positions.ts",
    code: "    for (const subscription of fresh) this.#next.set(keyOf(subscription), 1);\n",
    without: "",
    test: positions,
  },
  {
    safeguard: "a message the server has not kept is lost",
    file: "source/opcua/monitoring/missing-messages.ts",
    code: "      if (!lostBefore) this.#options.lost(id);\n",
    without: "",
    test: missing,
  },
  {
    safeguard: "what another agent has acknowledged is not lost",
    file: "source/opcua/monitoring/missing-messages.ts",
    code: '      if (found === "gone" && mayBeStored) continue;\n',
    without: "",
    test: missing,
  },
  {
    safeguard: "after a message that the server has, a missing one is lost",
    file: "source/opcua/monitoring/missing-messages.ts",
    code: "        mayBeStored &&= tracker?.isOld(sequenceNumber) === true;\n",
    without: "",
    test: missing,
  },
  {
    safeguard: "only the first messages after a takeover may be on another agent's disk",
    file: "source/opcua/monitoring/sequence.ts",
    code: "    const lags = this.#lags;\n    this.#lags = false;\n",
    without: "    const lags = this.#lags;\n",
    test: sequence,
  },
  {
    safeguard: "positions are exact once this agent has stored a message",
    file: "source/opcua/monitoring/positions.ts",
    code: "    this.#lagging.delete(key);\n    this.#next.set(key, next);\n",
    without: "    this.#next.set(key, next);\n",
    test: positions,
  },
  {
    safeguard: "fetching the last message of a former subscription",
    file: "source/opcua/monitoring/missing-messages.ts",
    code: "known ? missing : [...missing, last]",
    without: "missing",
    test: missing,
  },
  {
    safeguard: "what was fetched is had",
    file: "source/opcua/monitoring/missing-messages.ts",
    code: "    tracker.fetched();\n",
    without: '    if (this.#options.trackers.size > 1) tracker.fetched();\n    else return "none";\n',
    test: missing,
  },
  {
    safeguard: "a former subscription stays until all it gave is on disk",
    file: "source/opcua/monitoring/sequence.ts",
    code: "this.#ended && this.#open.size === 0",
    without: "this.#ended",
    test: missing,
  },
  {
    safeguard: "telling an acknowledgement again whose request failed",
    file: "source/opcua/monitoring/publisher.ts",
    code: "      this.#acknowledged.unshift(...acknowledged);\n",
    without: "",
    test: publisher,
  },
  {
    safeguard: "reading no structure in another encoding than the binary one",
    file: "source/opcua/types/structure.ts",
    code: "encoding === 1 ? { nodeId,",
    without: "encoding > 0 ? { nodeId,",
    test: "unit/source/opcua/structure.test.ts",
    name: "only the Binary encoding",
  },
];
