import { expect, test } from "vitest";
import {
  findSunspec,
  sunspecModels,
  sunspecNodes,
  sunspecRegisters,
} from "../../../../src/source/modbus/discovery/sunspec.ts";

const sunS = [0x5375, 0x6e53];

/** Holding registers that contain these words from `start` on, and no others. */
function registers(start: number, words: readonly number[]) {
  return async (_table: string, from: number, count: number) =>
    from >= start && from + count <= start + words.length ? words.slice(from - start, from - start + count) : undefined;
}

test.each([40_000, 0, 50_000, 39_999, 1, 49_999])("a map at %i is found and walked to its end", async (base) => {
  const words = [...sunS, 1, 2, 7, 7, 103, 1, 0, 0xff_ff, 0];
  expect(await findSunspec(registers(base, words))).toEqual([
    { id: 1, start: base + 2, length: 2 },
    { id: 103, start: base + 6, length: 1 },
  ]);
});

test("a map without an end, or one that ends at the last register, is read in finite time", async () => {
  expect(await findSunspec(registers(50_000, [...sunS, 1, 0]))).toEqual([{ id: 1, start: 50_002, length: 0 }]);
  const endless = async (_table: string, from: number, count: number) =>
    from === 40_000 ? sunS : Array.from({ length: count }, (_, i) => (i === 0 ? 103 : 0));
  expect((await findSunspec(endless)).length).toBeLessThanOrEqual(64);
});

test("a model that is shorter than its table gives only the points that it has", () => {
  const names = sunspecNodes({ id: 103, start: 100, length: 5 }, 1).map(({ name }) => name);
  expect(names).toEqual(["SunSpec 103: three-phase inverter, 5 registers", "A", "AphA", "AphB", "AphC"]);
});

test("a group repeats while there is room for it and its scale factors are within reach of a request", () => {
  const nodes = sunspecNodes({ id: 160, start: 1_000, length: 8 + 2 * 20 }, 1);
  expect(nodes).toHaveLength(1 + 2 * 6);
  expect(nodes.find(({ name }) => name === "module2.DCW")?.tag).toEqual({
    unit: 1,
    at: "hr:1041 u16",
    scaleFactor: "hr:1004",
    nullValues: "sunspec",
  });
  expect(nodes.find(({ name }) => name === "module1.DCWH")?.tag).toMatchObject({ at: "hr:1022 u32", nullValues: [0] });
  const many = sunspecNodes({ id: 160, start: 1_000, length: 8 + 20 * 20 }, 1).map(({ name }) => name);
  expect(many).toContain("module6.DCW");
  expect(many).not.toContain("module7.DCW");
  expect(many).toContain("module20.Tmp");
});

test("points do not overlap, have unique names, and fit one request with their scale factor", () => {
  for (const { points } of Object.values(sunspecModels)) {
    expect(new Set(points.map(({ name }) => name)).size).toBe(points.length);
    const taken = points.flatMap(({ offset, type }) =>
      Array.from({ length: sunspecRegisters[type] }, (_, i) => offset + i),
    );
    expect(new Set(taken).size).toBe(taken.length);
    for (const { offset, scale = offset } of points) expect(Math.abs(scale - offset)).toBeLessThan(124);
    expect(points.some(({ scale }) => scale !== undefined && taken.includes(scale))).toBe(false);
  }
});
