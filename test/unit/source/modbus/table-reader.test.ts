import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { UnitRequest } from "../../../../src/source/modbus/config/pdu.ts";
import type { Result } from "../../../../src/source/modbus/connection/result.ts";
import { tableReader } from "../../../../src/source/modbus/discovery/address-scan.ts";

const silence: Result = { kind: "silence", mismatch: undefined, received: false };
const refusal = (code: number): Result => ({ kind: "exception", code, at: epochMicros(0), tookMs: 0 });

/** A unit that answers with `answer` and counts the requests. */
function unit(answer: (request: UnitRequest) => Result) {
  const asked: UnitRequest[] = [];
  const link = {
    read: async (request: UnitRequest) => {
      asked.push(request);
      return answer(request);
    },
  };
  return { asked, read: tableReader(link, 1, 1_000) };
}

test("a table at which a unit is silent is skipped, and the others are still read", async () => {
  const { asked, read } = unit((request) => ("table" in request && request.table === "hr" ? silence : refusal(2)));

  for (let i = 0; i < 50; i++) expect(await read("hr", i, 1)).toBeUndefined();
  expect(asked).toHaveLength(10);
  for (let i = 0; i < 50; i++) expect(await read("ir", i, 1)).toBeUndefined();
  expect(asked).toHaveLength(60);
});

test("a table that a unit does not have is skipped soon, and nothing beyond the last address is read", async () => {
  const { asked, read } = unit(() => refusal(1));

  for (let i = 0; i < 100; i++) expect(await read("hr", i, 1)).toBeUndefined();
  expect(asked).toHaveLength(40);
  expect(await read("co", 65_535, 2)).toBeUndefined();
  expect(asked).toHaveLength(40);
});

test("exception 1 at a hole does not end a table with readable registers", async () => {
  const { read } = unit((request) =>
    "start" in request && request.start < 60 && request.start > 0
      ? refusal(1)
      : { kind: "data", bytes: Uint8Array.of(0, 7), at: epochMicros(0), tookMs: 0 },
  );

  for (let i = 0; i < 60; i++) await read("hr", i, 1);
  expect(await read("hr", 60, 1)).toEqual([7]);
});
