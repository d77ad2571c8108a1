// A Variant is skipped exactly, whatever it holds.
import fc from "fast-check";
import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { BinaryStream } from "../../../../src/source/opcua/stack/stack-parts.ts";
import { skipVariant } from "../../../../src/source/opcua/types/skip-variant.ts";
import { runs } from "../../../support/property.ts";

const { DataType, VariantArrayType } = ua;
const text = fc.option(fc.string({ maxLength: 20 }));
const bytes = fc.uint8Array({ minLength: 1, maxLength: 20 }).map((array) => Buffer.from(array));
const nodeId = fc.constantFrom(
  "i=7",
  "i=300",
  "ns=300;i=70000",
  "s=Temp",
  "ns=2;b=AQID",
  `g=${"0".repeat(8)}-0000-0000-0000-${"0".repeat(12)}`,
);
const time = fc.date({ min: new Date(0), max: new Date("2100-01-01"), noInvalidDate: true });
const scalars: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  Boolean: fc.boolean(),
  SByte: fc.integer({ min: -128, max: 127 }),
  Byte: fc.nat(255),
  Int16: fc.integer({ min: -32_768, max: 32_767 }),
  UInt16: fc.nat(65_535),
  Int32: fc.integer(),
  UInt32: fc.nat(),
  Int64: fc.tuple(fc.nat(), fc.nat()),
  UInt64: fc.tuple(fc.nat(), fc.nat()),
  Float: fc.float(),
  Double: fc.double(),
  String: text,
  DateTime: time,
  Guid: fc.constant("72962B91-FA75-4AE6-8D28-B404DC7DAF63"),
  ByteString: bytes,
  XmlElement: text,
  NodeId: nodeId.map((id) => ua.resolveNodeId(id)),
  ExpandedNodeId: fc.tuple(nodeId, text, fc.nat(3)).map(([id, uri, server]) => {
    const { identifierType, value, namespace } = ua.resolveNodeId(id);
    return new ua.ExpandedNodeId(identifierType, value, namespace, uri, server);
  }),
  StatusCode: fc.constantFrom(ua.StatusCodes.Good, ua.StatusCodes.BadTimeout),
  QualifiedName: text.map((name) => new ua.QualifiedName({ namespaceIndex: 2, name })),
  LocalizedText: fc.tuple(text, text).map(([locale, each]) => new ua.LocalizedText({ locale, text: each })),
  ExtensionObject: fc.double().map((deadbandValue) => new ua.DataChangeFilter({ deadbandValue })),
  DataValue: fc.tuple(time, time, fc.nat(9_999), fc.boolean()).map(
    ([sourceTimestamp, serverTimestamp, sourcePicoseconds, bad]) =>
      new ua.DataValue({
        value: { dataType: DataType.Double, value: 1 },
        statusCode: bad ? ua.StatusCodes.BadTimeout : ua.StatusCodes.Good,
        sourceTimestamp,
        serverTimestamp,
        sourcePicoseconds,
      }),
  ),
  DiagnosticInfo: fc.tuple(text, fc.nat()).map(
    ([additionalInfo, localizedText]) =>
      new ua.DiagnosticInfo({
        localizedText,
        additionalInfo,
        innerDiagnosticInfo: new ua.DiagnosticInfo({ symbolicId: 1 }),
      }),
  ),
};
const variants = fc.constantFrom(...Object.keys(scalars)).chain((name) => {
  const scalar = scalars[name] ?? fc.constant(null);
  const dataType = Reflect.get(DataType, name) as ua.DataType; // the names are those of the enumeration
  const array = fc.array(scalar, { minLength: 1, maxLength: 6 });
  return fc.oneof(
    scalar.map((value) => new ua.Variant({ dataType, arrayType: VariantArrayType.Scalar, value })),
    array.map((value) => new ua.Variant({ dataType, arrayType: VariantArrayType.Array, value })),
    array.map(
      (value) => new ua.Variant({ dataType, arrayType: VariantArrayType.Matrix, dimensions: [value.length, 1], value }),
    ),
  );
});

test("the stream stands behind the Variant, whatever its type", () => {
  fc.assert(
    fc.property(fc.array(variants, { minLength: 1, maxLength: 3 }), (all) => {
      const value = all.length > 1 ? new ua.Variant({ dataType: DataType.Variant, arrayType: 1, value: all }) : all[0];
      const stream = new BinaryStream(10_000);
      value?.encode(stream);
      const end = stream.length;
      stream.rewind();
      skipVariant(stream);
      expect(stream.length).toBe(end);
    }),
    runs(500),
  );
});

test("reserved types are skipped like a ByteString; other types and cut values are refused", () => {
  const skipped = (hex: string) => {
    const stream = new BinaryStream(Buffer.from(hex, "hex"));
    skipVariant(stream);
    return stream.length;
  };
  expect(skipped("1a02000000ffffff")).toBe(7);
  expect(skipped("00")).toBe(1);
  expect(() => skipped("3f0000000000")).toThrow("no built-in type 63");
  expect(() => skipped("110900")).toThrow("no NodeId of kind 9");
  expect(() => skipped("0cff000000ff")).toThrow("ends within a value");
});
