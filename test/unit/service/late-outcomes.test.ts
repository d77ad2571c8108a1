import { expect, test } from "vitest";
import { outcomeKey } from "../../../src/service/http/late-outcomes.ts";
import type { Grant, ServedVersion } from "../../../src/wire/method.ts";
import { integration } from "../../support/service.ts";

const body = (id: number, name = "a") =>
  Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"admin.publishSignals","params":{"name":"${name}"}}`);
const keyOf = (
  of: Buffer<ArrayBuffer>,
  grants: Grant[] = ["admin"],
  version: ServedVersion = "1.1",
  id = integration,
) => outcomeKey(of, { integration: id, grants }, version, "admin.publishSignals");

test("a repeated request is recognised whatever its ID, only with credentials of the same integration and grants", async () => {
  const key = await keyOf(body(1));
  expect(await keyOf(body(2))).toBe(key);
  const others = [
    keyOf(body(1, "b")),
    keyOf(body(1), ["platform"]),
    keyOf(body(1), []),
    keyOf(body(1), ["admin"], "1.2"),
    keyOf(body(1), ["admin"], "1.1", "c8ktonqsahsmemfs7lvg"),
  ];
  expect(new Set([key, ...(await Promise.all(others))]).size).toBe(6);
});
