// The Input IDs that a configuration can produce.
import fc from "fast-check";
import { expect, test } from "vitest";
import { isInputId } from "../../../src/core/point.ts";
import { configuredInputs, fillInput } from "../../../src/mapping/input-template.ts";
import { tagOptions } from "../../../src/mapping/options.ts";
import { runs } from "../../support/property.ts";

const rules = (...inputs: readonly string[]) => inputs.map((input) => tagOptions.parse({ input }));

test("configured inputs are known with their metadata, others are not", () => {
  const tag = tagOptions.parse({ input: "boiler.temp", signal: { engUnit: "°C" } });
  const inputs = configuredInputs([tag, ...rules("hall.{room}.temp")]);
  expect([...inputs.fixed]).toEqual([["boiler.temp", { engUnit: "°C" }]]);
  const asked = ["boiler.temp", "boiler.tem", "hall.a.temp", "hall.temp", "hall.a.hum", "call.a.temp", "hal.temp"];
  expect(asked.filter((input) => inputs.has(input))).toEqual(["boiler.temp", "hall.a.temp", "hall.temp"]);
});

test("every Input ID of a template counts as configured", () => {
  const part = fc.constantFrom("{a}", "{b}", "hall", "temp", ".", "-", "/");
  const capture = fc.constantFrom("", "x", "kitchen", "ä b", "Ω%", "y".repeat(130), "temp", ".");
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 7 }), capture, capture, (parts, a, b) => {
      const template = parts.join("");
      fc.pre(template.includes("{"));
      const input = fillInput(template, { a, b });
      fc.pre(isInputId(input));
      expect(configuredInputs(rules(template)).has(input), `${template} ${input}`).toBe(true);
    }),
    runs(1_000),
  );
});
