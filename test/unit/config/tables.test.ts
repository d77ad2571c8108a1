// Tags and devices in spreadsheet files.
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseCsv } from "../../../src/config/files/tag-table.ts";
import { complaints, head, load, withPassword } from "../../support/config.ts";
import { runs } from "../../support/property.ts";

const bus = `${head}sources:
  bus1:
    type: modbus
    url: tcp://h
    tagsFrom: lists/tags.csv
    tags:
      - { input: first, at: "hr:0" }
`;
const rulesOf = async (text: string, csv: string, variables = {}) =>
  (await load(text, { ...withPassword, ...variables }, { "/site/lists/tags.csv": csv })).sources[0]?.rules;
const complaintsOf = (csv: string) => complaints(bus, withPassword, { "/site/lists/tags.csv": csv });

test("the rows of a table follow the tags of the file, columns are the keys", async () => {
  const csv = `input,at,scale,signal.engUnit,signal.name,report.deadband
m1.voltage,hr:0 u16,0.1,V,"Voltage, line 1",0.5
m1.power,hr:4 f32 cdab,,kW,,
`;
  expect(await rulesOf(bus, csv)).toMatchObject([
    { input: "first" },
    { input: "m1.voltage", scale: 0.1, signal: { engUnit: "V", name: "Voltage, line 1" }, report: { deadband: 0.5 } },
    { input: "m1.power", scale: 1, signal: { engUnit: "kW" } },
  ]);
});

test("a table as spreadsheets in Europe save it: BOM, semicolons, decimal commas, CRLF", async () => {
  const csv = "\ufeffsep=;\r\ninput;at;scale;signal.engUnit\r\nm1.t;hr:0 i16;0,1;°C\r\n;;;\r\n# later;;;\r\n";
  expect(await rulesOf(bus, csv)).toMatchObject([{}, { input: "m1.t", scale: 0.1, signal: { engUnit: "°C" } }]);
});

test("decimal commas are read in exponents and percentages, too, as spreadsheets write small numbers", async () => {
  const csv = "input;at;scale;report.deadband;valid.min;valid.max\nm1.t;hr:0;1,50E-03;0,5%;0;1,5e2\n";
  const [, rule] = (await rulesOf(bus, csv)) ?? [];
  expect(rule).toMatchObject({ scale: 0.0015, report: { deadband: { percent: 0.5 } }, valid: { min: 0, max: 150 } });
});

test("a column unit with units of values says which column they belong into", async () => {
  expect(await complaintsOf("input;at;unit\r\nm1.v;hr:0;V\r\n")).toMatch(
    /tags\.csv:2:11 .*unit {2}must be from 0 to 255, is "V"\n.*The unit of a value is signal\.engUnit\./,
  );
});

test("a cell in brackets or braces is a list or a map, a template is a text, a reference is replaced", async () => {
  const csv = "input\tat\tsignal.labels.hall\tvalues\n${DEV}.x\thr:0\t[north, 3]\t{ ON: 1 }\n";
  const [, rule] =
    (await rulesOf(bus.replace("[north, 3]", ""), csv.replace("north, 3", 'north, "3"'), { DEV: "m7" })) ?? [];
  expect(rule).toMatchObject({ input: "m7.x", signal: { labels: { hall: ["north", "3"] } }, values: { ON: 1 } });
});

test("a map in a cell and columns with dots are merged", async () => {
  const csv = 'input\tat\tsignal\tsignal.engUnit\tsignal.labels.hall\nm1.t\thr:0\t{ name: Oven }\t°C\t["3"]\n';
  const [, rule] = (await rulesOf(bus, csv)) ?? [];
  expect(rule?.signal).toEqual({ name: "Oven", engUnit: "°C", labels: { hall: ["3"] } });
});

test("devices may be listed in a table, with their variables", async () => {
  const { sources } = await load(
    `${head}templates: { t: [{ input: "{dev}.v", at: "hr:{base}" }] }
sources: { bus1: { type: modbus, url: "tcp://h", devicesFrom: d.csv } }
`,
    withPassword,
    { "/site/d.csv": "unit,template,vars.dev,vars.base\n1,t,m1,0\n2,t,m2,100\n" },
  );
  expect(sources[0]?.rules.map(({ input }) => input)).toEqual(["m1.v", "m2.v"]);
  expect(sources[0]?.tags).toMatchObject([
    { unit: 1, at: { address: 0 } },
    { unit: 2, at: { address: 100 } },
  ]);
});

test("an error in a table is reported with its line and column in the table", async () => {
  const said = await complaintsOf("input,at,scal\nm1.a,hr:0 u61,2\nfirst,hr:1,\n");
  expect(said).toContain("lists/tags.csv:1:10  sources.bus1.tagsFrom[0].scal  unknown key; did you mean scale?");
  expect(said).toContain("lists/tags.csv:2:6  sources.bus1.tagsFrom[0].at  u61 is neither a type nor an order");
  expect(said).toContain(
    "lists/tags.csv:3:1  sources.bus1.tagsFrom[1].input  Input ID first is used twice, first in agent.yaml:9",
  );
});

test("the column that turns a text into a map is the one reported", async () => {
  const csv = "input,at,signal.name,signal.name.short\nm1.t,hr:0,Oven,O\n";
  expect(await complaintsOf(csv)).toContain(
    "lists/tags.csv:2:16  sources.bus1.tagsFrom[0].signal.name  must be a text",
  );
});

test("a table that cannot be read, is empty or has an open quote is an error", async () => {
  expect(await complaints(bus, withPassword)).toMatch(
    /^agent\.yaml:7:15 .*lists\/tags\.csv cannot be read: there is no such file/,
  );
  expect(await complaintsOf("")).toMatch(/^lists\/tags\.csv:1:1 .*is empty/);
  expect(await complaintsOf('input,at\na,"hr:0\nb,hr:1\n')).toMatch(
    /^lists\/tags\.csv:2:3 .*has a quote that is not closed/,
  );
  expect(await complaintsOf("input,at,scale,at\na,hr:0,1,hr:1\n")).toMatch(
    /^lists\/tags\.csv:1:16 .*column at stands here twice/,
  );
  expect(await complaintsOf("input,at\na,hr:1,5\n")).toMatch(
    /^lists\/tags\.csv:2:8 .*stands in a column without a name/,
  );
});

test("a written table parses to the same cells, whatever they hold", () => {
  const cell = fc
    .string({ unit: fc.constantFrom("a", '"', ",", ";", "\n", "\r\n", " x", "ü") })
    .map((text) => text.trim());
  fc.assert(
    fc.property(fc.array(fc.array(cell, { minLength: 3, maxLength: 3 }), { maxLength: 6 }), (rows) => {
      const written = [["x", "y", "z"], ...rows];
      const csv = written.map((row) => row.map((text) => `"${text.replaceAll('"', '""')}"`).join(",")).join("\n");
      const read = Array.from(parseCsv(csv).rows(), (row) => row.map(({ text }) => text));
      expect(read).toEqual(written.filter((row) => row.some((text) => text !== "")));
    }),
    runs(300),
  );
});
