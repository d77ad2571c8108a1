// CBOR and MessagePack. The CBOR vectors are those of RFC 8949, appendix A.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cborDocument, messagePackDocument } from "../../../../src/source/mqtt/decoders/binary-documents.ts";
import { PayloadError } from "../../../../src/source/mqtt/decoders/payload.ts";
import { runs } from "../../../support/property.ts";

const hex = (text: string) => Buffer.from(text, "hex");

test.each([
  ["00", 0],
  ["1903e8", 1_000],
  ["1b000000e8d4a51000", 1_000_000_000_000],
  ["1bffffffffffffffff", 18_446_744_073_709_551_615n],
  ["c249010000000000000000", 18_446_744_073_709_551_616n],
  ["3bffffffffffffffff", -18_446_744_073_709_551_616n],
  ["c349010000000000000000", -18_446_744_073_709_551_617n],
  ["20", -1],
  ["3903e7", -1_000],
  ["f90000", 0],
  ["f93e00", 1.5],
  ["fa47c35000", 100_000],
  // The float nearest to 0.1.
  ["fa3dcccccd", 0.1],
  ["fb3ff199999999999a", 1.1],
  ["f97e00", Number.NaN],
  ["f4", false],
  ["f5", true],
  ["f6", null],
  ["f7", undefined],
  ["c11a514b67b0", 1_363_896_240],
  ["c074323031332d30332d32315432303a30343a30305a", "2013-03-21T20:04:00Z"],
  ["4401020304", Uint8Array.of(1, 2, 3, 4)],
  ["62c3bc", "ü"],
  ["8301820203820405", [1, [2, 3], [4, 5]]],
  ["a201020304", { 1: 2, 3: 4 }],
  ["a26161016162820203", { a: 1, b: [2, 3] }],
  ["5f42010243030405ff", Uint8Array.of(1, 2, 3, 4, 5)],
  ["7f657374726561646d696e67ff", "streaming"],
  ["9fff", []],
  ["9f018202039f0405ffff", [1, [2, 3], [4, 5]]],
  ["bf61610161629f0203ffff", { a: 1, b: [2, 3] }],
  ["bf6346756ef563416d7421ff", { Fun: true, Amt: -2 }],
])("CBOR %s is read", (text, value) => {
  const document = cborDocument(hex(text));
  expect(document instanceof Uint8Array ? Uint8Array.from(document) : document).toEqual(value);
});

test.each([
  ["7f", 127],
  ["ff", -1],
  ["ccff", 255],
  ["cfffffffffffffffff", 18_446_744_073_709_551_615n],
  ["d0df", -33],
  ["d3ffdfffffffffffff", -9_007_199_254_740_993n],
  ["ca3dcccccd", 0.1],
  ["cb3ff199999999999a", 1.1],
  ["c0", null],
  ["c2", false],
  ["c3", true],
  ["a3666f6f", "foo"],
  ["d903666f6f", "foo"],
  ["c403010203", Uint8Array.of(1, 2, 3)],
  ["93010203", [1, 2, 3]],
  ["dc0002c0c3", [null, true]],
  ["82a161a178a162cb4035800000000000", { a: "x", b: 21.5 }],
  ["de0001a16101", { a: 1 }],
  ["d6ff6955b900", 1_767_225_600_000_000_000n],
  ["d7ff1dcd65006955b900", 1_767_225_600_125_000_000n],
  ["c70cff07735940000000006955b900", 1_767_225_600_125_000_000n],
  ["d40501", Uint8Array.of(1)],
])("MessagePack %s is read", (text, value) => {
  const document = messagePackDocument(hex(text));
  expect(document instanceof Uint8Array ? Uint8Array.from(document) : document).toEqual(value);
});

describe.each([
  [
    "CBOR",
    cborDocument,
    ["", "19", "ff", "1c", "1f", "3f", "df", "63616261ff", "5f01ff", "0000", "62c328", "a1820102f5"],
  ],
  ["MessagePack", messagePackDocument, ["", "cd", "c1", "a3616263c0", "d9ff61", "dfffffffff", "a2c328", "8192010203"]],
] as const)("%s", (_name, decode, broken) => {
  test("that is damaged is refused", () => {
    for (const text of broken) expect(() => decode(hex(text)), text).toThrow(PayloadError);
    expect(() => decode(Buffer.alloc(1_000, decode === cborDocument ? 0x81 : 0x91))).toThrow(/nested deeper than 64/);
  });

  test("of any bytes is decoded or refused with a PayloadError, and a member may have any name", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        try {
          decode(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(PayloadError);
        }
      }),
      runs(3_000),
    );
    const name = Buffer.from("__proto__");
    const head = decode === cborDocument ? [0xa1, 0x60 + name.length] : [0x81, 0xa0 + name.length];
    const document = decode(Buffer.concat([Buffer.from(head), name, Buffer.from([1])]));
    expect(Object.getOwnPropertyNames(document)).toEqual(["__proto__"]);
  });
});
