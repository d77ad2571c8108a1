import { expect, test } from "vitest";
import { FaultPlan, parseFault } from "../../../src/service/config/fault.ts";

function fault(text: string) {
  const parsed = parseFault(text);
  if (typeof parsed === "string") throw new Error(parsed);
  return parsed;
}

test("a fault defines its effect, its methods and its rate", () => {
  expect(fault("delay=1m30s,method=Insert,rate=0.5,after=2,first=3,seed=9")).toEqual({
    kind: "delay",
    value: 90_000,
    inputs: [],
    method: "integration.insert",
    rate: 0.5,
    after: 2,
    first: 3,
    seed: 9,
  });
  expect(fault("partial=a.b+c")).toMatchObject({ inputs: ["a.b", "c"], rate: 1 });
  expect(fault("skew=-5m")).toMatchObject({ value: -300_000 });
});

test.each([
  "",
  "explode",
  "delay",
  "delay=soon",
  "status=999",
  "refuse=1",
  "partial=",
  "html,method=remove",
  "html,rate=2",
  "html,rate=x",
  "html,seed=1.5",
  "html,often=1",
])("%j is refused in words", (text) => {
  expect(parseFault(text)).toEqual(expect.any(String));
});

test("the same seed affects the same calls, another seed others, at about the rate", () => {
  const hits = (seed: number) => {
    const plan = new FaultPlan([fault(`html,rate=0.3,seed=${seed}`)]);
    return Array.from({ length: 1_000 }, () => plan.next("integration.insert").length).join("");
  };
  expect(hits(1)).toBe(hits(1));
  expect(hits(1)).not.toBe(hits(2));
  expect(hits(1).replaceAll("0", "").length).toBeGreaterThan(250);
  expect(hits(1).replaceAll("0", "").length).toBeLessThan(350);
});

test("a fault begins after the calls that may pass, ends after its count, and does not affect other methods", () => {
  const plan = new FaultPlan([fault("html,method=insert,after=1,first=2")]);
  const hit = (method: "integration.insert" | "admin.selectSignals" = "integration.insert") => plan.next(method).length;
  expect([hit(), hit("admin.selectSignals"), hit(), hit(), hit(), hit()]).toEqual([0, 0, 1, 1, 0, 0]);
});
