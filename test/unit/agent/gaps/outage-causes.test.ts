// Which rows of the gap record cover a whole source, so that the source continues them when it starts again.
import { expect, test } from "vitest";
import type { Gap } from "../../../../src/agent/gaps/gap.ts";
import { isOutage } from "../../../../src/agent/gaps/gap-rows.ts";

const causes = {
  agentDown: true,
  disconnected: true,
  stopped: true,
  takeover: true,
  bad: false,
  refused: false,
  overflow: false,
  buffer: false,
} satisfies Record<Gap["cause"], boolean>;

test.for(Object.entries(causes))("a row with the cause %s covers a whole source: %s", ([cause, isWhole]) => {
  expect(isOutage({ cause: cause as Gap["cause"] })).toBe(isWhole); // a key of `causes`
});
