// The tests with third-party servers on Node 26, whose serial streams keep received bytes in their own buffer.
import { expect, test } from "vitest";
import { otherNode } from "../support/other-node.ts";
import { runSuite } from "../support/suite-run.ts";

test("every vector arrives on Node 26 too, from pymodbus and libmodbus, over networks and lines", async () => {
  const node = await otherNode("26.10.0");

  const { numPassedTests } = await runSuite({
    files: ["test/integration/modbus-pymodbus", "test/integration/modbus-libmodbus"],
    peers: true,
    node,
  });

  expect(numPassedTests).toBeGreaterThanOrEqual(10);
}, 300_000);
