// However a file is changed, it is either valid, or rejected with a position.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { configIssues } from "../../../src/config/load.ts";
import { isAgentError } from "../../../src/core/errors.ts";
import { load } from "../../support/config.ts";
import { runs } from "../../support/property.ts";

const whole = readFileSync(join(import.meta.dirname, "../../fixtures/config/whole.yaml"), "utf8");
const variables = { SERVICE_PASSWORD: "canary-1", MQTT_PASSWORD: "canary-2" };
const files = { "/run/secrets/line3_password": "canary-3\n" };

const pieces = [
  "{",
  "}",
  "[",
  "]",
  '"',
  "'",
  ":",
  ": ",
  "- ",
  "#",
  "&a",
  "*a",
  "!x",
  "|",
  "\n",
  "  ",
  "\t",
  "~",
  "-1",
  "1e999",
  "null",
  "true",
  ".nan",
  "${",
  "${X}",
  "<<: ",
  "\u0000",
  "\ufeff",
  "🙂",
  "__proto__: 1\n",
  "? ",
];

/** Replaces a part of the text with something else. */
const mutation = fc.record({
  at: fc.nat({ max: whole.length }),
  cut: fc.oneof(fc.constant(0), fc.nat({ max: 5 }), fc.nat({ max: 200 })),
  put: fc.oneof(fc.constant(""), fc.constantFrom(...pieces), fc.string({ maxLength: 8 })),
});

async function outcome(text: string): Promise<string> {
  try {
    await load(text, variables, files);
    return "right";
  } catch (error) {
    if (!isAgentError(error, "CONFIG_INVALID")) throw error;
    for (const { line, column, message, path, hint } of configIssues(error)) {
      expect(line).toBeGreaterThanOrEqual(1);
      expect(column).toBeGreaterThanOrEqual(1);
      expect(message).not.toBe("");
      expect(message).not.toMatch(/regex|Invalid/);
      expect(`${path} ${message} ${hint}`).not.toMatch(/canary/);
    }
    expect(configIssues(error).length).toBeGreaterThan(0);
    return "wrong";
  }
}

test("the complete example is valid", async () => {
  expect(await outcome(whole)).toBe("right");
});

test("a file changed anywhere is valid or gives errors with positions, and shows no secret", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 3 }), async (mutations) => {
      let text = whole;
      for (const { at, cut, put } of mutations) text = text.slice(0, at) + put + text.slice(at + cut);
      await outcome(text);
    }),
    runs(120),
  );
});

/** Replaces one value of the example. The structure stays, so that the schemas are reached. */
test("a value of any kind in any place is valid or gives an error with a position", async () => {
  const places = [...whole.matchAll(/(?<=: )[^\s{}[\],"][^,\n}]*(?=[,\n}])/g)];
  const values = [
    "{}",
    "[]",
    "~",
    "-1",
    "1e999",
    "true",
    "''",
    "[1, {a: 2}]",
    "{ a: { b: [c] } }",
    "99999999999999999999",
    ".nan",
    '"\\u0000"',
    "x".repeat(300),
  ];
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...places), fc.constantFrom(...values), async (place, value) => {
      await outcome(whole.slice(0, place.index) + value + whole.slice(place.index + place[0].length));
    }),
    runs(150),
  );
});

test("any text is valid or gives errors", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary", maxLength: 60 }), async (text) => void (await outcome(text))),
    runs(120),
  );
});
