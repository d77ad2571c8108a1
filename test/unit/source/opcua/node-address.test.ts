import { expect, test } from "vitest";
import {
  localNodeId,
  numericNamespaces,
  parsePath,
  portableNodeId,
  stepMatches,
} from "../../../../src/source/opcua/config/node-address.ts";

const namespaces = ["http://opcfoundation.org/UA/", "urn:plc", "urn:a;b%c"];

test("a namespace URI is converted to its current index, and back", () => {
  expect(localNodeId('nsu=urn:plc;s="DB1"."x"', namespaces)).toBe('ns=1;s="DB1"."x"');
  expect(localNodeId("nsu=urn:a%3Bb%25c;i=7", namespaces)).toBe("ns=2;i=7");
  expect(localNodeId("nsu=urn:gone;i=7", namespaces)).toBeUndefined();
  expect(localNodeId("ns=1;s=a;b", namespaces)).toBe("ns=1;s=a;b");
  expect(portableNodeId("ns=2;i=7", namespaces)).toBe("nsu=urn:a%3Bb%25c;i=7");
  expect(portableNodeId("ns=0;i=2258", namespaces)).toBe("ns=0;i=2258");
});

test("only an index beyond the standard namespace may change its meaning", () => {
  expect(numericNamespaces({ node: "ns=3;s=T" })).toEqual([3]);
  expect(numericNamespaces({ node: "i=2258" })).toEqual([]);
  expect(numericNamespaces({ node: "nsu=urn:plc;s=T" })).toEqual([]);
  expect(numericNamespaces({ path: "0:Objects/2:Plc/3:Oven/2:Temp" })).toEqual([2, 3]);
  expect(numericNamespaces({ browse: "4:Plc/**" })).toEqual([4]);
  expect(numericNamespaces({ path: "Plc/Oven" })).toEqual([]);
});

test("a path starts at Objects, stated or not", () => {
  const steps = [
    { namespace: undefined, name: "Line3" },
    { namespace: 2, name: "Oven" },
  ];
  for (const path of ["Line3/2:Oven", "/Objects/Line3/2:Oven", "Objects/Line3/2:Oven", "0:Objects/Line3/2:Oven"])
    expect(parsePath(path)).toEqual(steps);
});

test("a slash within a name is escaped with an ampersand", () => {
  expect(parsePath("Line/rate &/s&& more").map(({ name }) => name)).toEqual(["Line", "rate /s& more"]);
});

test("a star matches any characters within one name", () => {
  const [step] = parsePath("Motor*.Speed");
  if (!step) throw new TypeError("no step");
  expect(stepMatches(step, 2, "Motor12.Speed")).toBe(true);
  expect(stepMatches(step, 2, "Motor12xSpeed")).toBe(false);
  expect(stepMatches({ namespace: 3, name: "A" }, 2, "A")).toBe(false);
});
