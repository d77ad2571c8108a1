// Input IDs from templates: substitution, empty captures, and characters that are not allowed in an Input ID.
import fc from "fast-check";
import { expect, test } from "vitest";
import { isInputId } from "../../../src/core/point.ts";
import { fillInput, literals, placeholders, sanitise } from "../../../src/mapping/input-template.ts";
import { runs } from "../../support/property.ts";

test("names in braces are replaced by their captures", () => {
  expect(fillInput("hall.{room}.temp", { room: "kitchen" })).toBe("hall.kitchen.temp");
  expect(fillInput("{a}{b}", { a: "x", b: "y" })).toBe("xy");
  expect(placeholders("{a}.{b}.{a}")).toEqual(["a", "b"]);
  expect(literals("hall.{room}.temp")).toEqual(["hall.", ".temp"]);
});

test("an empty capture removes its separator", () => {
  const template = "{group}.{node}.{device}.{metric}";
  expect(fillInput(template, { group: "g", node: "n", device: "", metric: "m" })).toBe("g.n.m");
  expect(fillInput(template, { group: "", node: "n", device: "", metric: "" })).toBe("n");
  expect(fillInput("{a}/x", { a: "" })).toBe("x");
  expect(fillInput("x-{a}", {})).toBe("x");
  expect(fillInput("x{a}y", { a: "" })).toBe("xy");
});

test("a name from the object prototype captures nothing", () => {
  expect(fillInput("x.{constructor}", {})).toBe("x");
});

test("characters that are invalid in an Input ID are transliterated or become one _", () => {
  expect(sanitise("Kühlwasser Vorlauf")).toBe("Kuhlwasser_Vorlauf");
  expect(sanitise("Straße 5 %")).toBe("Strasse_5_pct");
  expect(sanitise("25 °C")).toBe("25_degC");
  expect(sanitise("  Temp (1)  ")).toBe("Temp_1");
  expect(sanitise("Łódź/Øst")).toBe("Lodz/Ost");
  expect(sanitise("a/b.c:d#e+f-g_h")).toBe("a/b.c:d#e+f-g_h");
});

test("letters of other scripts become a hash, so that names in them stay apart", () => {
  const names = ["Насос", "Клапан", "水泵", "水阀", "がき", "かき", "й", "и", "מנוע"];
  const ids = names.map((name) => fillInput("{line}.{name}", { line: "l3", name: `${name} 1` }));
  for (const id of ids) expect(id).toMatch(/^l3\.[0-9a-f]{8}_1$/);
  expect(new Set(ids).size).toBe(names.length);
  expect(sanitise("Ø Насос/水泵 2")).toMatch(/^O_[0-9a-f]{8}\/[0-9a-f]{8}_2$/);
  expect(sanitise("が".normalize("NFD"))).toBe(sanitise("が"));
});

test("a sign that is another form of a letter has the text of the letter", () => {
  expect(sanitise("R1 \u2126")).toBe("R1_Ohm"); // the ohm sign
  expect(sanitise("Flow \u2113")).toBe("Flow_l"); // a script small l
});

test("an Input ID that is too long keeps its tail after a hash, and differs when the beginning does", () => {
  const long = (first: string) => fillInput("{x}.temp", { x: first + "y".repeat(200) });
  expect(long("a")).toHaveLength(128);
  expect(long("a")).toMatch(/^[0-9a-f]{8}_y+\.temp$/);
  expect(long("a")).not.toBe(long("b"));
  expect(long("a")).toBe(long("a"));
});

test("any capture gives a valid Input ID or an empty one", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.string(), (a, b) => {
      const id = fillInput("{a}.{b}", { a, b });
      expect(id === "" || isInputId(id)).toBe(true);
    }),
    runs(1_000),
  );
});
