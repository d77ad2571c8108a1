// Structured values for the test server: a data type with nested structures, arrays, a matrix and an enumeration, and
// variables of this type.
import { ensureDatatypeExtracted } from "node-opcua-address-space";
import { DataType } from "node-opcua-client";
import type { OPCUAServer } from "node-opcua-server";

type Space = NonNullable<OPCUAServer["engine"]["addressSpace"]>;
type Namespace = ReturnType<Space["registerNamespace"]>;
type Folder = Parameters<Namespace["addFolder"]>[0];

/** The value of the variable `Drive`, NodeId `s=Drive`. `Drives` holds an array of them. */
export interface Drive {
  readonly running: boolean;
  readonly total: readonly [number, number];
  readonly motor: { readonly speed: number; readonly name: string };
  readonly axes: readonly { readonly speed: number; readonly name: string }[];
  readonly state: number;
}

export interface Structures {
  set(drive: Drive, at: Date): void;
}

export async function addStructures(space: Space, own: Namespace, line: Folder): Promise<Structures> {
  const type = (browseName: string, subtypeOf: string, partialDefinition: object[]) => {
    const made = own.createDataType({ browseName, isAbstract: false, subtypeOf, partialDefinition });
    const encoding = own.addObject({
      browseName: { name: "Default Binary", namespaceIndex: 0 },
      nodeId: `s=${browseName}.Binary`,
      typeDefinition: "DataTypeEncodingType",
    });
    encoding.addReference({ referenceType: "HasEncoding", isForward: false, nodeId: made.nodeId });
    return made;
  };
  const motor = type("MotorType", "Structure", [
    { name: "Speed", dataType: DataType.Float, valueRank: -1 },
    { name: "Name", dataType: DataType.String, valueRank: -1 },
  ]);
  const drive = type("DriveType", "Structure", [
    { name: "Running", dataType: DataType.Boolean, valueRank: -1 },
    { name: "Total", dataType: DataType.UInt64, valueRank: -1 },
    { name: "Motor", dataType: motor.nodeId, valueRank: -1 },
    { name: "Axes", dataType: motor.nodeId, valueRank: 1 },
    { name: "State", dataType: "i=852", valueRank: -1 },
  ]);
  await ensureDatatypeExtracted(space);
  const variable = own.addVariable({
    componentOf: line,
    browseName: "Drive",
    nodeId: "s=Drive",
    dataType: drive.nodeId,
  });
  const several = own.addVariable({
    componentOf: line,
    browseName: "Drives",
    nodeId: "s=Drives",
    dataType: drive.nodeId,
    valueRank: 1,
  });
  return {
    set: (value, at) => {
      const object = () => space.constructExtensionObject(drive, { ...value });
      variable.setValueFromSource({ dataType: DataType.ExtensionObject, value: object() }, undefined, at);
      several.setValueFromSource(
        { dataType: DataType.ExtensionObject, arrayType: 1, value: [object(), object()] },
        undefined,
        at,
      );
    },
  };
}
