import { expect, test } from "vitest";
import { unreportedOverflows } from "../../../../src/source/opcua/publishing/notification.ts";
import { overflowWeakness } from "../../../../src/source/opcua/session/server-facts.ts";

const change = (handle: number, status = 0) => ({ handle, value: { statusCode: { value: status } } });
const overflow = 0x480;

test("a full queue without an overflow bit may have lost values before its first one", () => {
  const changes = [change(2), change(1), change(2), change(2), change(2)];
  const found = unreportedOverflows(changes, () => ({ size: 4, usual: 2 }), false);
  expect([...found]).toEqual([changes[0]]);
  expect(unreportedOverflows(changes, () => ({ size: 5, usual: 2 }), false).size).toBe(0);
});

test("an overflow bit is conclusive, and a full queue counts only at servers that never set it", () => {
  const marked = [change(1, overflow), change(1)];
  expect(unreportedOverflows(marked, () => ({ size: 2, usual: 1 }), true).size).toBe(0);
  const full = [change(1), change(1)];
  expect(unreportedOverflows(full, () => ({ size: 2, usual: 4 }), false).size).toBe(0);
  expect(unreportedOverflows(full, () => ({ size: 2, usual: 4 }), true).size).toBe(1);
  // With a queue of one, or of unknown size, an overflow cannot be detected.
  for (const size of [0, 1]) expect(unreportedOverflows(full, () => ({ size, usual: 4 }), true).size).toBe(0);
});

test("servers that never set the overflow bit are recognised by their product", () => {
  const product = { name: "", uri: "", manufacturer: "", version: "" };
  expect(overflowWeakness({ ...product, manufacturer: "FreeOpcUa", version: "1.0pre" })).toMatch("full queues discard");
  const open62541 = { ...product, uri: "http://open62541.org" };
  expect(overflowWeakness({ ...open62541, version: "0.3.1" })).toMatch("full queues discard");
  expect(overflowWeakness({ ...open62541, version: "1.3.5" })).toBeUndefined();
  expect(overflowWeakness({ ...product, name: "NodeOPCUA-Server" })).toBeUndefined();
});
