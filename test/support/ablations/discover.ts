// Safeguards of the page that adds tags to a configuration.
import type { Ablation } from "./ablation.ts";

const opcua = "integration/discover/opcua.test.ts";

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
];
