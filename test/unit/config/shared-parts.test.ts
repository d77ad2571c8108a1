import { expect, test } from "vitest";
import { SharedParts } from "../../../src/config/sources/tag-places.ts";

test("equal members share one object, and no value changes", () => {
  const shared = new SharedParts();
  const tag = (topic: string, path: string) => ({ topic: { text: topic }, value: { steps: [path] }, every: 1_000 });
  const [a, b, c] = [tag("a", "v"), tag("b", "v"), tag("c", "w")].map((one) => shared.of(one));
  expect([a, b, c]).toEqual([tag("a", "v"), tag("b", "v"), tag("c", "w")]);
  expect(b?.value).toBe(a?.value);
  expect(c?.value).not.toBe(a?.value);
});

test.each([
  ["a function", () => ({ apply: (text: string) => text })],
  ["a member that is undefined", () => ({ min: undefined })],
  ["an instance of a class", () => ({ at: new Map([[1, 2]]) })],
  ["minus zero", () => ({ offset: -0 })],
  ["a number that JSON does not know", () => ({ max: Number.POSITIVE_INFINITY })],
  ["a large integer", () => ({ id: 2n ** 70n })],
])("%s, of which JSON does not say all, stays as it is", (_, make) => {
  const shared = new SharedParts();
  const [first, second] = [make(), make()];
  expect(shared.of({ part: first }).part).toBe(first);
  expect(shared.of({ part: second }).part).toBe(second);
});

test("the first thousand values of a member that differs everywhere are remembered", () => {
  const shared = new SharedParts();
  const make = (i: number) => ({ topic: { text: `line/${i}` } });
  const first = Array.from({ length: 2_000 }, (_, i) => shared.of(make(i)));
  const again = Array.from({ length: 2_000 }, (_, i) => shared.of(make(i)));
  expect(again.filter(({ topic }, i) => topic === first[i]?.topic)).toHaveLength(1_000);
});
