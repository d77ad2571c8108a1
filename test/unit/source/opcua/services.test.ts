import fc from "fast-check";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { BatchSize, inBatches } from "../../../../src/source/opcua/session/services.ts";
import { runs } from "../../../support/property.ts";

test("results are in the order of the items, however few a server accepts in one call", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(60),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 20 }),
      async (many, size, most) => {
        const items = Array.from({ length: many }, (_, i) => i);
        let refused = 0;
        const results = await inBatches(items, new BatchSize(size), async (part) => {
          for (let wait = part[0] ?? 0; wait > 0; wait -= 7) await Promise.resolve();
          if (part.length <= most) return part.map((item) => item * 2);
          refused++;
          throw new AgentError("SOURCE_UNREACHABLE", "Read: the server answers BadTooManyOperations");
        });
        expect(results).toEqual(items.map((item) => item * 2));
        // The limit is remembered: only calls already in flight are refused at each size.
        expect(refused).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(20)) + 2);
      },
    ),
    runs(300),
  );
});

test("a refusal for another reason, or at one operation, ends the call", async () => {
  const refusing = (status: string) =>
    inBatches([1, 2, 3], new BatchSize(0), () => Promise.reject(new AgentError("SOURCE_UNREACHABLE", status)));
  await expect(refusing("BadUserAccessDenied")).rejects.toThrow("BadUserAccessDenied");
  await expect(refusing("BadTooManyOperations")).rejects.toThrow("BadTooManyOperations");
  await expect(inBatches([1, 2], new BatchSize(0), async () => [1])).rejects.toThrow("1 results for 2 operations");
});
