// Fields of structured values from a real server: the source reads the type definitions, including nested ones.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { lineNamespace, type OpcuaServer, opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource } from "../support/opcua-source.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
let server: OpcuaServer;
const drive = {
  running: true,
  total: [0, 0] as const,
  motor: { speed: 0.1, name: "M1" },
  axes: [
    { speed: 1.5, name: "X" },
    { speed: 2.5, name: "Y" },
  ],
  state: 4,
};
const node = (name: string, more: object) => ({ node: `nsu=${lineNamespace};s=${name}`, ...more });

beforeAll(async () => {
  server = await opcuaServer({ folder: folder.file("server") });
  await server.drive(drive);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const open = async (tags: readonly object[], options: object = {}) =>
  collect(
    await openOpcuaSource({
      stateDir: folder.file("state"),
      options: { url: server.url, security: { mode: "none" }, ...options },
      tags: tags.map((tag) => ({ ...tag })),
    }),
  );

test.each([
  ["subscribe", 1],
  ["poll", 2],
])("fields of a structure are values of their own (%s)", async (mode, round) => {
  const fields = ["Running", "Total", "Motor.Speed", "Axes[1].Speed", "Axes[1].Name", "State"];
  await using line = await open(
    [...fields.map((field) => node("Drive", { field })), node("Drives", { index: 1, field: "Motor.Speed" })],
    { mode },
  );
  await eventually(() => line.descriptions.length === 7);
  expect(line.descriptions[3]?.signal).toEqual({ name: "Drive Axes[1].Speed" });
  const at = new Date(Date.UTC(2026, 2, round, 12, 0, 0, 123));
  await server.drive({ ...drive, total: [1, round], running: round === 1 }, at);
  const expected = [round === 1, 2n ** 32n + BigInt(round), 0.1, 2.5, "Y", 4, 0.1];
  for (const [i, value] of expected.entries())
    expect(await line.reading(({ tag, time }) => tag === i && time === at.getTime() * 1_000)).toMatchObject({
      value,
      quality: "good",
      clock: "device",
    });
});

test("a missing field is reported with the existing ones", async () => {
  await using line = await open([
    node("Drive", { field: "Moter.Speed" }),
    node("Drive", { field: "Axes.Speed" }),
    node("Drive", { field: "Axes[7].Speed" }),
    node("Drive", {}),
    node("Count", { field: "Speed" }),
    { node: "i=2256", field: "BuildInfo.ProductName" },
    { node: "i=2256", field: "State" },
  ]);
  const reason = async (i: number) => (await line.reading(({ tag }) => tag === i)).reason;
  expect(await reason(0)).toBe("the structure has no field Moter; it has Running, Total, Motor, Axes, State");
  expect(await reason(1)).toBe("an array stands before Speed; write its element, as in [0].Speed");
  expect(await reason(2)).toBe("the array has no element 7");
  expect(await reason(3)).toBe("a structure cannot be stored; name a field of it");
  expect(await reason(4)).toBe("not a structure");
  expect(await line.reading(({ tag }) => tag === 5)).toMatchObject({ value: expect.any(String), quality: "good" });
  expect(await line.reading(({ tag }) => tag === 6)).toMatchObject({ value: 0, quality: "good" });
});
