// Safeguards of the page that adds tags to a configuration.
import type { Ablation } from "./ablation.ts";

const opcua = "integration/discover/opcua.test.ts";

const others = "integration/discover/other-protocols.test.ts";
const connection = "unit/source/modbus/modbus-connection.test.ts";

export const discoverAblations: readonly Ablation[] = [
  {
    safeguard: "writing only what was shown as a difference",
    file: "discover/discover.ts",
    code: "if (proposal.base !== wish.base || proposal.result !== wish.result) return failed(409, changed, undefined, stale);",
    without: "",
    test: opcua,
  },
  {
    safeguard: "writing only a configuration that check accepts",
    file: "discover/discover.ts",
    code: "    if (errors.length > 0)",
    without: "    if (errors.length < 0)",
    test: opcua,
  },
  {
    safeguard: "taking back a file that the agent refuses",
    file: "discover/write.ts",
    code: "    if (before === undefined) await rm(file);",
    without: "    if (before === undefined) return;",
    test: opcua,
  },
  {
    safeguard: "hiding secrets in the lines around a change",
    file: "discover/difference.ts",
    code: "...range(from, same).map((i) => ` ${shownLine(old, i)}`),",
    without: "...range(0, same).map((i) => ` ${old[i]}`),",
    test: opcua,
  },
  {
    safeguard: "hiding secrets in a changed line",
    file: "discover/difference.ts",
    code: "isAddition ? next[i] : shownLine(next, i)",
    without: "next[i]",
    test: "unit/discover/difference.test.ts",
  },
  {
    safeguard: "names of a device that are no references to files of the agent",
    file: "discover/tags-yaml.ts",
    code: 'text.replaceAll("${", () => "$${")',
    without: "text",
    test: "unit/discover/tags-yaml.test.ts",
    message: "agent.yaml: 1 error",
  },
  {
    safeguard: "searching a device over the connection of the source that polls it",
    file: "source/modbus/discovery/search.ts",
    code: "    const source = this.#running();\n",
    without: "    const source: ModbusSource | undefined = undefined;\n",
    test: others,
    name: "a search follows",
  },
  {
    safeguard: "reading no address in a search that the configuration forbids",
    file: "source/modbus/polling/source.ts",
    code: '    if ("table" in request && !this.#mayAsk(request))\n',
    without: "    if (request.unit < 0)\n",
    test: others,
    name: "a search follows",
  },
  {
    safeguard: "a connection that does not end because a search finds no unit",
    file: "source/modbus/connection/modbus-connection.ts",
    code: ' else if (result.kind === "silence" && conclusive !== undefined)\n      this.#hearNothing(request.unit, conclusive,',
    without: ' else if (result.kind === "silence")\n      this.#hearNothing(request.unit, conclusive ?? true,',
    test: connection,
    name: "silence of units that a search",
  },
  {
    safeguard: "ending a connection whose own units are silent, whatever a search has found",
    file: "source/modbus/connection/modbus-connection.ts",
    code: "      if (conclusive === undefined) return result;\n",
    without: "",
    test: connection,
    name: "a unit that only a search",
  },
  {
    safeguard: "waiting for the answer of an abandoned search",
    file: "source/modbus/connection/modbus-connection.ts",
    code: "this.#read(request, timeoutMs, this.#closing.signal, undefined)",
    without: "this.#read(request, timeoutMs, signal, undefined)",
    test: connection,
    name: "a search that is aborted",
  },
];
