// The address of each variable that a pattern matches: the same after a restart, and unique.
import { expect, test } from "vitest";
import type { TagId } from "../../../../src/core/source.ts";
import { opcuaTag } from "../../../../src/source/opcua/config/options.ts";
import { type Resolver, resolveTags } from "../../../../src/source/opcua/nodes/items.ts";

interface Node {
  readonly id: string;
  readonly name: string;
  readonly below?: readonly Node[];
}

const folder = (id: string, name: string, ...below: readonly Node[]): Node => ({ id, name, below });
const variable = (id: string, name: string): Node => ({ id, name });

/**
 * The addresses that `pattern` matches on a server with these nodes below Objects. `urns` follow the standard
 * namespace.
 */
async function addresses(pattern: string, nodes: readonly Node[], urns: readonly string[]) {
  const all = new Map<string, readonly Node[]>();
  const add = ({ id, below = [] }: Node) => {
    all.set(id, below);
    below.forEach(add);
  };
  add(folder("Objects", "Objects", ...nodes));
  const nodeIdOf = (id: string) => ({
    namespace: Number(/^ns=(\d+)/.exec(id)?.[1] ?? 0),
    value: id,
    toString: () => id,
  });
  const services = {
    children: async (parents: readonly { value: string }[]) =>
      parents.map(({ value }) =>
        (all.get(value) ?? []).map(({ id, name, below }) => ({
          nodeId: nodeIdOf(id),
          namespace: nodeIdOf(id).namespace,
          name,
          variable: below === undefined,
          property: false,
        })),
      ),
  };
  const ua = { makeNodeId: () => nodeIdOf("Objects") };
  const resolver = { ua, services, structures: {}, namespaces: ["", ...urns], known: new Map() };
  const tag = { ...opcuaTag.parse({ browse: pattern }), every: 1_000 };
  const given = resolver as unknown as Resolver; // the part of a server that is used
  const { items } = await resolveTags([[0 as TagId, tag]], given, new AbortController().signal);
  return items.map(({ address, captures }) => [address, captures["path"]]);
}

test("each variable has its browse path, in the order of the server", async () => {
  const motors = ["M02", "M01"].map((name) => folder(`ns=1;s=${name}`, name, variable(`ns=1;s=${name}.C`, "Current")));
  expect(await addresses("Line/**", [folder("ns=1;s=L", "Line", ...motors)], ["urn:a"])).toEqual([
    ["Line/M02/Current", "M02/Current"],
    ["Line/M01/Current", "M01/Current"],
  ]);
});

test("names with a slash and names of several levels have different addresses", async () => {
  const nodes = [variable("ns=1;i=1", "a/b"), folder("ns=1;i=2", "a", variable("ns=1;i=3", "b"))];
  expect(await addresses("**", nodes, ["urn:a"])).toEqual([
    ["a&/b", "a/b"],
    ["a/b", "a/b"],
  ]);
});

test("variables whose names differ only in the namespace are distinguished by their NodeIds, however namespace indexes change", async () => {
  const at = (a: number, b: number) => [variable(`ns=${a};s=T`, "Temp"), variable(`ns=${b};s=T`, "Temp")];
  const expected = [
    ["Temp (nsu=urn:a;s=T)", "Temp"],
    ["Temp (nsu=urn:b;s=T)", "Temp"],
  ];
  expect(await addresses("T*", at(1, 2), ["urn:a", "urn:b"])).toEqual(expected);
  expect(await addresses("T*", at(2, 3), ["urn:new", "urn:a", "urn:b"])).toEqual(expected);
});
