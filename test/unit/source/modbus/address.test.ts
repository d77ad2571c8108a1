import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Address,
  addressFrom,
  formatAddress,
  modiconNumber,
  parseAddress,
} from "../../../../src/source/modbus/config/address.ts";
import { orders, registersFor, registersOf, type ValueType } from "../../../../src/source/modbus/config/registers.ts";
import { textOf } from "../../../support/documents.ts";
import { runs } from "../../../support/property.ts";

const parsed = (input: string | number) => {
  const result = parseAddress(input);
  return typeof result === "string" ? result : formatAddress(result);
};

test.each([
  ["hr:0 u16", "hr:0 u16"],
  ["hr:4 f32 cdab", "hr:4 f32 cdab"],
  ["hr:4 cdab f32", "hr:4 f32 cdab"],
  ["  HR:4   F32  CDAB ", "hr:4 f32 cdab"],
  ["hr:20.3 bit", "hr:20.3 bit"],
  ["hr:20.3", "hr:20.3 bit"],
  ["hr:7", "hr:7 u16"],
  ["hr:0x64 i16", "hr:100 i16"],
  ["ir:10 u32", "ir:10 u32"],
  ["hr:20 bits(4..7)", "hr:20 bits(4..7)"],
  ["hr:20 bits(0..31) cdab", "hr:20 bits(0..31) cdab"],
  ["co:5", "co:5"],
  ["di:3", "di:3"],
  ["co:5 bit", "co:5"],
  ["40001", "hr:0 u16"],
  [40001, "hr:0 u16"],
  ["400001 f32", "hr:0 f32"],
  ["465536", "hr:65535 u16"],
  ["30001 i16", "ir:0 i16"],
  ["10001", "di:0"],
  ["00001", "co:0"],
  ["000017", "co:16"],
  ["4x00101", "hr:100 u16"],
  ["4x0001", "hr:0 u16"],
  ["4x1 f32", "hr:0 f32"],
  ["3X0005", "ir:4 u16"],
  ["1x10", "di:9"],
  ["4x65536", "hr:65535 u16"],
  ["40101.3", "hr:100.3 bit"],
])("%s is %s", (text, address) => {
  expect(parsed(text)).toBe(address);
});

test.each([
  ["100", "100 names no table: for a holding register write hr:100, or hr:99 where the manual counts from 1"],
  [100, "hr:100"],
  [0, "for a holding register write hr:0 ("],
  ["0x64", "hr:100"],
  ["50001", "names no table"],
  ["40000", "40001 is hr:0"],
  [40101.3, 'write "40101.3" in quotes'],
  ["hr:65536", "addresses end at 65535"],
  ["hr:65535 u32", "reaches beyond 65535"],
  ["465537", "addresses end at 65535"],
  ["hr:5 string", "string is refused: the service stores numbers"],
  ["hr:5 float", "did you mean f32?"],
  ["hr:5 u17", "u17 is neither a type nor an order"],
  ["hr:5 u16 i16", "names two types, u16 and i16"],
  ["hr:5 u16 swapped", "write cdab where the low word comes first"],
  ["hr:5 u32 4321", "did you mean dcba?"],
  ["hr:5 uint16, big", "did you mean u16?"],
  ["hr:5 string(8)", "is refused: the service stores numbers"],
  ["70000", "70000 names no table, and addresses end at 65535"],
  ["0x0001", "names no table"],
  ["%MW100", "%MW100 is a controller's own name"],
  ["D100", "D100 is a controller's own name"],
  ["%IX3.1", "%IX3.1 is a controller's own name"],
  ["HR 100", "did you mean hr:100?"],
  ["hr: 100 f32", "did you mean hr:100 f32?"],
  ["hr:100:u16", "did you mean hr:100 u16?"],
  ["holding register 100", "did you mean hr:100?"],
  ["input register 7 i16", "did you mean ir:7 i16?"],
  ["discrete input 7", "did you mean di:7?"],
  ["coil 5", "did you mean co:5?"],
  ["hr:1e3", "the form is"],
  ["hr:5 u16 abcd cdab", "too many words"],
  ["hr:5 abcd cdab", "names two orders"],
  ["hr:5 bit", "say which bit, as in hr:5.0 bit"],
  ["hr:5.3 u16", "hr:5.3 bit"],
  ["hr:5.16", "bits 0 to 15"],
  ["hr:5 bits", "say which bits"],
  ["hr:5 bits(7..4)", "the lowest first"],
  ["hr:5 bits(0..64)", "at most 63"],
  ["hr:65535 bits(0..16)", "reaches beyond 65535"],
  ["co:5 u16", "takes no type"],
  ["co:5.1", "neither bit number nor order"],
  ["xx:5", "is no Modbus address"],
  ["hr:", "is no Modbus address"],
  ["hr:-1", "is no Modbus address"],
  ["", "is no Modbus address"],
])("%s is refused with: %s", (text, message) => {
  expect(parsed(text)).toContain(message);
});

const types = Object.keys(registersOf) as ValueType[];
const addresses: fc.Arbitrary<Address> = fc.oneof(
  fc.record({ table: fc.constantFrom("co", "di"), address: fc.nat(65_535), type: fc.constant("bit") }),
  fc.record(
    {
      table: fc.constantFrom("hr", "ir"),
      address: fc.nat(65_532),
      type: fc.constantFrom(...types.filter((type) => type !== "bit" && type !== "bits")),
      order: fc.constantFrom(...orders),
    },
    { requiredKeys: ["table", "address", "type"] },
  ),
  fc.record({
    table: fc.constantFrom("hr", "ir"),
    address: fc.nat(65_535),
    type: fc.constant("bit"),
    bit: fc.nat(15),
  }),
  fc
    .tuple(fc.constantFrom("hr", "ir"), fc.nat(65_532), fc.nat(63), fc.nat(63))
    .map(([table, address, a, b]) => ({ table, address, type: "bits", bit: Math.min(a, b), toBit: Math.max(a, b) })),
) as fc.Arbitrary<Address>;

test("every address parses back from its text and from its parts", () => {
  fc.assert(
    fc.property(addresses, (address) => {
      expect(parseAddress(formatAddress(address))).toEqual(address);
      expect(addressFrom(address)).toEqual(address);
    }),
    runs(2_000),
  );
});

test("every register parses back from its Modicon number", () => {
  fc.assert(
    fc.property(fc.constantFrom("hr", "ir", "co", "di"), fc.nat(65_535), (table, address) => {
      const result = parseAddress(modiconNumber({ table, address }));
      expect(result).toMatchObject({ table, address });
    }),
    runs(2_000),
  );
});

test("the address suggested by an error is valid", () => {
  for (const text of ["HR 100", "holding:7 u16", "hr:5/f32", "coil#3", "hr:8:i32,cdab", "100", "65535"]) {
    const meant = /(?:did you mean|register write) ([^?,]+?)(?:\?|,|$)/.exec(parsed(text))?.[1] ?? "";
    expect(parseAddress(meant), `${text}: ${parsed(text)}`).toBeTypeOf("object");
  }
});

test("no text makes the parser throw, and a parsed address is within the device", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.stringMatching(/^(hr|ir|co|di)?:?[0-9x.]{0,8}( [a-z0-9]{0,6}){0,3}$/)),
      (text) => {
        const result = parseAddress(text);
        if (typeof result === "object") expect(result.address).toBeLessThanOrEqual(65_535);
        else expect(result).not.toBe("");
      },
    ),
    runs(3_000),
  );
});

test("docs/modbus.md shows valid addresses, and types with the number of their registers", () => {
  const page = textOf("docs/modbus.md");
  const shown = [...page.matchAll(/`"?((?:(?:hr|ir|co|di):|4x|\d{5})[^`"]*)"?`/g)].map(([, address = ""]) => address);
  const valid = shown.filter((address) => address !== "hr:");
  expect(valid.length).toBeGreaterThan(9);
  expect(valid.filter((address) => typeof parseAddress(address) === "string")).toEqual([]);

  const rows = [...page.matchAll(/^\| (`[^|]+`) *\| (\d[^|]*?) *\|/gm)];
  const wrong = rows.flatMap(([, types = "", registers = ""]) => {
    const numbers = registers.split(/, | to /).map(Number);
    return (types.match(/[\w().]+/g) ?? []).filter((type, i) => {
      const result = parseAddress(`hr:0${type === "bit" ? ".0" : ""} ${type}`);
      return typeof result === "string" || registersFor(result) !== (numbers[i] ?? numbers[0]);
    });
  });
  expect(rows.length).toBeGreaterThan(8);
  expect(wrong).toEqual([]);
});
