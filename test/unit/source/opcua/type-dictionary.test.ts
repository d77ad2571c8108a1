// Structures of servers before OPC UA 1.04, decoded with their dictionaries.
import { expect, test } from "vitest";
import { readDictionary } from "../../../../src/source/opcua/nodes/type-dictionary.ts";

const head = `<?xml version="1.0" encoding="utf-8"?>
<opc:TypeDictionary xmlns:opc="http://opcfoundation.org/BinarySchema/" xmlns:ua="http://opcfoundation.org/UA/"
  xmlns:tns="urn:plc" xmlns:n1="urn:other" DefaultByteOrder="LittleEndian" TargetNamespace="urn:plc">
  <opc:Import Namespace="http://opcfoundation.org/UA/" />`;
const read = (types: string) => readDictionary(`${head}${types}</opc:TypeDictionary>`, (name) => `dict ${name}`);
const field = (name: string, type: number | string, more = {}) => ({
  name,
  type,
  dimensions: 0,
  optional: false,
  ...more,
});

test("fields, nested structures, arrays with their counters, and enumerations", () => {
  const types = read(`
  <opc:EnumeratedType LengthInBits="32" Name="Mode"><opc:EnumeratedValue Name="Off" Value="0"/></opc:EnumeratedType>
  <!-- <opc:StructuredType Name="Old"/> -->
  <opc:StructuredType BaseType="ua:ExtensionObject" Name="Axis"><opc:Field TypeName="opc:Double" Name="Position"/></opc:StructuredType>
  <opc:StructuredType BaseType="ua:ExtensionObject" Name="Drive">
    <opc:Documentation>A drive.</opc:Documentation>
    <opc:Field TypeName="opc:Float" Name="&quot;Speed&quot; &#38; more" />
    <opc:Field TypeName="tns:Mode" Name='Mode' />
    <opc:Field TypeName="tns:Axis" Name="Axis" />
    <opc:Field TypeName="opc:Int32" Name="NoOfAxes" />
    <opc:Field TypeName="tns:Axis" Name="Axes" LengthField="NoOfAxes" />
    <opc:Field TypeName="ua:LocalizedText" Name="Note" />
  </opc:StructuredType>`);
  expect([...types.keys()]).toEqual(["Axis", "Drive"]);
  expect(types.get("Drive")).toEqual({
    kind: "plain",
    fields: [
      field('"Speed" & more', 10),
      field("Mode", 6),
      field("Axis", "dict Axis"),
      field("Axes", "dict Axis", { dimensions: 1 }),
      field("Note", 21),
    ],
  });
});

test("fields that may be missing, and unions", () => {
  const types = read(`
  <opc:StructuredType BaseType="ua:ExtensionObject" Name="Some">
    <opc:Field TypeName="opc:Bit" Name="ASpecified"/><opc:Field TypeName="opc:Bit" Name="CSpecified"/>
    <opc:Field TypeName="opc:Bit" Name="Reserved1" Length="30"/>
    <opc:Field TypeName="opc:Byte" Name="A" SwitchField="ASpecified"/>
    <opc:Field TypeName="opc:Byte" Name="B"/>
    <opc:Field TypeName="opc:Byte" Name="C" SwitchField="CSpecified"/>
  </opc:StructuredType>
  <opc:StructuredType BaseType="ua:Union" Name="Either">
    <opc:Field TypeName="opc:UInt32" Name="SwitchField"/>
    <opc:Field TypeName="opc:Byte" Name="A" SwitchField="SwitchField" SwitchValue="1"/>
    <opc:Field TypeName="opc:String" Name="B" SwitchField="SwitchField" SwitchValue="2"/>
  </opc:StructuredType>`);
  expect(types.get("Some")).toEqual({
    kind: "optional",
    fields: [field("A", 3, { optional: true }), field("B", 3), field("C", 3, { optional: true })],
  });
  expect(types.get("Either")).toEqual({ kind: "union", fields: [field("A", 3), field("B", 12)] });
});

test("only types that cannot be decoded as described are left out", () => {
  const types = read(`
  <opc:StructuredType Name="Good"><opc:Field TypeName="opc:Byte" Name="A"/></opc:StructuredType>
  <opc:StructuredType Name="Foreign"><opc:Field TypeName="n1:Good" Name="A"/></opc:StructuredType>
  <opc:StructuredType Name="Unknown"><opc:Field TypeName="ua:Argument" Name="A"/></opc:StructuredType>
  <opc:StructuredType Name="Fixed"><opc:Field TypeName="opc:Byte" Length="4" Name="A"/></opc:StructuredType>
  <opc:StructuredType Name="Counted"><opc:Field TypeName="opc:Int32" Name="N"/><opc:Field TypeName="opc:Byte" Name="A"/>
    <opc:Field TypeName="opc:Byte" Name="B" LengthField="N"/></opc:StructuredType>
  <opc:StructuredType Name="Bits"><opc:Field TypeName="opc:Bit" Name="X" Length="8"/></opc:StructuredType>`);
  expect([...types.keys()]).toEqual(["Good"]);
  expect(readDictionary("no dictionary", String).size).toBe(0);
});
