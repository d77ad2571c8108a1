// The safeguards of the pipeline and of what acknowledgement waits for: the gap record and the clock.
import type { Ablation } from "./ablation.ts";

const pipeline = "unit/agent/pipeline.test.ts";

export const agentAblations: readonly Ablation[] = [
  {
    safeguard: "waiting for the disk before the acknowledgement",
    file: "agent/pipeline.ts",
    code: "if (!(await store(points, delivery.awaited, parts, runtime, signal))) continue;",
    without: "void store(points, delivery.awaited, parts, runtime, signal);",
    test: pipeline,
  },
  {
    safeguard: "no acknowledgement of what could not be stored",
    file: "agent/pipeline.ts",
    code: "      if (signal.aborted) return false;",
    without: "      if (signal.aborted) return true;",
    test: pipeline,
  },
  {
    safeguard: "storing what was read when the agent stops",
    file: "agent/pipeline.ts",
    code: "{ awaited }, new AbortController().signal)",
    without: "{ awaited }, signal)",
    test: pipeline,
  },
  {
    safeguard: "storing what is held back when the agent stops",
    file: "agent/pipeline.ts",
    code: "  await store(parts.mapping.flush(), false, parts, runtime, signal);\n",
    without: "",
    test: pipeline,
  },
  {
    safeguard: "trying a disk again that is full or broken",
    file: "agent/pipeline.ts",
    code: '      if (!isAgentError(error, "BUFFER_UNAVAILABLE")) throw error;',
    without: "      throw error;",
    test: pipeline,
  },
  {
    safeguard: "the gap record before the acknowledgement",
    file: "agent/pipeline.ts",
    code: "if (await isRecorded(delivery, owed, gaps)) delivery.ack();",
    without: "delivery.ack();",
    test: pipeline,
  },
  {
    safeguard: "telling the gap record before the acknowledgement",
    file: "agent/pipeline.ts",
    code: "      gaps?.delivered(delivery);\n",
    without: "",
    test: pipeline,
  },
  {
    safeguard: "keeping deliveries that wait for the gap record",
    file: "agent/pipeline.ts",
    code: "if (tells && owed.push(delivery) > mostOwed) owed.shift();",
    without: "",
    test: pipeline,
  },
  {
    safeguard: "the bound of deliveries that wait for the gap record",
    file: "agent/pipeline.ts",
    code: "if (tells && owed.push(delivery) > mostOwed) owed.shift();",
    without: "if (tells) owed.push(delivery);",
    test: pipeline,
  },
  {
    safeguard: "acknowledging what waited for the gap record with any delivery",
    file: "agent/pipeline.ts",
    code: "(!tells && owed.length === 0)",
    without: "!tells",
    test: pipeline,
  },
  {
    safeguard: "the beginning of a gap when the connection is lost",
    file: "agent/pipeline.ts",
    code: "    parts.gaps?.lost(error);\n",
    without: "",
    test: pipeline,
  },
  {
    safeguard: "the end of a gap when the connection is made",
    file: "agent/pipeline.ts",
    code: "    gaps?.online(source);\n",
    without: "",
    test: pipeline,
  },
  {
    safeguard: "storing the first values after a reconnection",
    file: "agent/pipeline.ts",
    code: "    mapping.reconnected();\n",
    without: "",
    test: pipeline,
  },
  {
    safeguard: "a source that ends by itself is a loss",
    file: "agent/pipeline.ts",
    code: 'return signal.aborted ? undefined : new Error("the source ended without a reason");',
    without: "return undefined;",
    test: pipeline,
  },
  {
    safeguard: "beginning the back-off anew after a connection that was of use",
    file: "agent/pipeline.ts",
    code: "      arrived();\n",
    without: "",
    test: pipeline,
  },
  {
    safeguard: "giving up at the stop what waits for the clock",
    file: "agent/pipeline.ts",
    code: "  parts.hold?.close();\n",
    without: "",
    test: pipeline,
  },
];
