import fc from "fast-check";
import { BinaryStream } from "node-opcua-binary-stream";
import "node-opcua-client"; // loads the types of the data model
import { findBuiltInType } from "node-opcua-factory";
import { expect, test } from "vitest";
import {
  convertField,
  type KnownTypes,
  parseField,
  type StructureField,
  type StructureType,
} from "../../../../src/source/opcua/types/structure.ts";
import { runs } from "../../../support/property.ts";

/** Writes values in the OPC UA Binary encoding, implemented independently from the standard. */
class Bytes {
  readonly #parts: Buffer[] = [];
  u8 = (...values: number[]) => this.#add(Buffer.from(values));
  i32 = (value: number) => this.#sized(4, (to) => to.writeInt32LE(value));
  u32 = (value: number) => this.#sized(4, (to) => to.writeUInt32LE(value));
  f64 = (value: number) => this.#sized(8, (to) => to.writeDoubleLE(value));
  i64 = (value: bigint) => this.#sized(8, (to) => to.writeBigInt64LE(value));
  text = (value: string | undefined) =>
    value === undefined ? this.i32(-1) : this.i32(Buffer.byteLength(value)).#add(Buffer.from(value));
  #sized(bytes: number, write: (to: Buffer) => void): this {
    const part = Buffer.alloc(bytes);
    write(part);
    return this.#add(part);
  }
  #add(part: Buffer): this {
    this.#parts.push(part);
    return this;
  }
  get body(): Buffer {
    return Buffer.concat(this.#parts);
  }
}
const field = (name: string, type: number | string, more: Partial<StructureField> = {}): StructureField => ({
  name,
  type,
  dimensions: 0,
  optional: false,
  ...more,
});
const known = (types: Readonly<Record<string, StructureType>>): KnownTypes => ({
  binary: { Stream: BinaryStream, typeByName: findBuiltInType },
  typeOf: (encoding) => (encoding in types ? encoding : undefined),
  definition: (type) => types[type],
});
const plain = (...fields: StructureField[]): StructureType => ({ kind: "plain", fields });
const read = (body: Buffer, way: string, types: Readonly<Record<string, StructureType>>) =>
  convertField(
    { dataType: 22, arrayType: 0, value: { nodeId: "A", buffer: body } },
    undefined,
    parseField(way) ?? [],
    known(types),
  );

test("fields that cannot be stored are skipped, and the next ones decoded", () => {
  const bytes = new Bytes()
    .u8(...Buffer.alloc(16)) // Guid
    .text("blob") // ByteString
    .u8(3, 2, 0) // string NodeId
    .text("x")
    .u8(0x80 | 0x40, 7) // ExpandedNodeId with URI and server
    .text("urn:x")
    .u32(1)
    .u32(0x80_00_00_00) // StatusCode
    .u8(0x7f) // DiagnosticInfo with all fields and an inner one
    .i32(1)
    .i32(2)
    .i32(3)
    .i32(4)
    .text("info")
    .u32(0)
    .u8(0)
    .i64(132_000_000_000_000_000n); // DateTime
  const types = [14, 15, 17, 18, 19, 25, 13].map((type) => field(`F${type}`, type));
  expect(read(bytes.body, "F13", { A: plain(...types) })).toEqual({ value: Date.UTC(2019, 3, 17, 18, 40) });
  expect(read(bytes.body, "F19", { A: plain(...types) })).toEqual({ value: "Bad" });
  expect(read(bytes.body, "F14", { A: plain(...types) })).toEqual({ value: "00000000-0000-0000-0000-000000000000" });
  expect(read(bytes.body, "F15", { A: plain(...types) })).toEqual({ reason: "a ByteString cannot be stored" });
});

test("of a nested structure only the Binary encoding is decoded, however long it is", () => {
  const types = { A: plain(field("S", 22), field("After", 3)), "ns=2;i=7": plain(field("X", 3)) };
  const nodeId = () => new Bytes().u8(1, 2, 7, 0); // ns=2;i=7
  const xml = nodeId().u8(2).text("<X/>").u8(5).body;
  expect(read(xml, "S.X", types)).not.toHaveProperty("value");
  expect(read(xml, "After", types)).toEqual({ value: 5 });
  const nothing = nodeId().u8(1).i32(-1).u8(5).body;
  expect(read(nothing, "After", types)).toEqual({ value: 5 });
  const binary = nodeId().u8(1).i32(1).u8(4, 5).body;
  expect(read(binary, "S.X", types)).toEqual({ value: 4 });
  expect(read(binary, "After", types)).toEqual({ value: 5 });
});

test("a nested standard structure shorter than its definition has no value", () => {
  const types = { A: plain(field("S", 22)), "ns=0;i=886": plain(field("Low", 11), field("High", 11)) };
  const range = (bytes: Bytes, length: number) =>
    Buffer.concat([new Bytes().u8(1, 0, 0x76, 3, 1).i32(length).body, bytes.body]);
  const whole = range(new Bytes().f64(1).f64(9), 16);
  expect(read(whole, "S.High", types)).toEqual({ value: 9 });
  const short = range(new Bytes().f64(1), 8);
  expect(read(short, "S.High", types)).toEqual({
    reason: expect.stringContaining("not what its definition says") as unknown,
  });
});

test("optional fields are present as the mask defines", () => {
  const types = {
    A: {
      kind: "optional",
      fields: [field("A", 3, { optional: true }), field("B", 3), field("C", 3, { optional: true })],
    },
  } as const;
  const body = new Bytes().u32(0b10).u8(5, 6).body;
  expect(read(body, "B", types)).toEqual({ value: 5 });
  expect(read(body, "C", types)).toEqual({ value: 6 });
  expect(read(body, "A", types)).toEqual({ reason: "the structure has no field A; it has B, C" });
});

test("a union has the field of its switch, or none", () => {
  const types = { A: { kind: "union", fields: [field("A", 3), field("B", 11)] } } as const;
  expect(read(new Bytes().u32(2).f64(1.5).body, "B", types)).toEqual({ value: 1.5 });
  expect(read(new Bytes().u32(0).body, "B", types)).toEqual({ reason: "the structure is empty" });
});

test("an element of a matrix, and a field of a structure in one", () => {
  const types = {
    A: plain(field("M", 6, { dimensions: 2 }), field("S", "B", { dimensions: 3 })),
    B: plain(field("X", 3)),
  };
  const bytes = new Bytes().i32(2).i32(2).i32(3);
  for (const value of [1, 2, 3, 4, 5, 6]) bytes.i32(value);
  bytes.i32(3).i32(1).i32(2).i32(2).u8(7, 8, 9, 10);
  expect(read(bytes.body, "M[1,2]", types)).toEqual({ value: 6 });
  expect(read(bytes.body, "M[2,0]", types)).toEqual({ reason: "the array has no element 2,0" });
  expect(read(bytes.body, "S[0,1,0].X", types)).toEqual({ value: 9 });
});

test("self-describing values are decoded: Variants, arrays of them, nested structures", () => {
  const types = {
    A: plain(field("V", 24), field("L", 24, { dimensions: 1 }), field("S", 22), field("D", 23)),
    "ns=2;i=9": plain(field("X", 3)),
  };
  const bytes = new Bytes().u8(6).i32(-5);
  bytes
    .i32(2)
    .u8(1, 1, 0x80 | 6)
    .i32(2)
    .i32(3)
    .i32(4);
  bytes.u8(1, 2, 9, 0, 1).i32(1).u8(7);
  bytes.u8(0x01 | 0x08, 3, 200).i64(0n);
  expect(read(bytes.body, "V", types)).toEqual({ value: -5 });
  expect(read(bytes.body, "L[0]", types)).toEqual({ value: true });
  expect(read(bytes.body, "L[1][1]", types)).toEqual({ value: 4 });
  expect(read(bytes.body, "S.X", types)).toEqual({ value: 7 });
  expect(read(bytes.body, "D", types)).toEqual({ value: 200 });
  expect(read(bytes.body, "S.X", { A: types.A })).toMatchObject({ unknown: "ns=2;i=9" });
});

test("a path may have names with dots and brackets", () => {
  expect(parseField("a&.b&[0&].c[1,2][3]")).toEqual([
    { name: "a.b[0]" },
    { name: "c" },
    { index: [1, 2] },
    { index: [3] },
  ]);
  for (const wrong of ["", ".a", "a.", "a..b", "[1].a", "a[x]", "a[1"])
    expect(parseField(wrong), wrong).toBeUndefined();
});

test("no bytes crash the decoder", () => {
  const types = {
    A: plain(
      field("V", 24),
      field("N", 17),
      field("B", "B", { dimensions: 1 }),
      field("M", 24, { dimensions: 2 }),
      field("E", 18),
    ),
    B: { kind: "optional", fields: [field("A", "A", { optional: true }), field("D", 25), field("S", 22)] },
  } as const;
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (body) => {
      const got = read(Buffer.from(body), "E", types);
      expect("reason" in got || "value" in got).toBe(true);
    }),
    runs(2_000),
  );
});
