// Structures of servers that describe their types only in a dictionary, or not at all.
import { BinaryStream } from "node-opcua-binary-stream";
import * as ua from "node-opcua-client";
import { findBuiltInType } from "node-opcua-factory";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { structureTypes } from "../../../../src/source/opcua/nodes/structure-types.ts";
import type { NodeId, ReadTarget, Services } from "../../../../src/source/opcua/session/services.ts";
import { testRuntime } from "../../../support/runtime.ts";

const xml = `<opc:TypeDictionary xmlns:opc="http://opcfoundation.org/BinarySchema/" xmlns:tns="urn:plc" TargetNamespace="urn:plc">
<opc:StructuredType Name="&quot;Drive&quot;"><opc:Field Name="Speed" TypeName="opc:Double"/></opc:StructuredType>
</opc:TypeDictionary>`;
const never = new AbortController().signal;

/** Decodes a variable whose type has the encoding ns=3;i=1, which ns=3;i=2 in the dictionary ns=3;i=3 describes. */
async function speedFrom(dictionary: () => unknown) {
  const { log, lines } = testRuntime();
  const services = {
    related: async ([node]: readonly NodeId[], direction: string) => {
      if (direction === "Forward") return [[ua.coerceNodeId("ns=3;i=2")]];
      return [node?.value === 2 ? [ua.coerceNodeId("ns=3;i=3")] : []];
    },
    read: async (targets: readonly ReadTarget[]) =>
      targets.map(({ nodeId, attributeId }) => {
        if (attributeId !== ua.AttributeIds.Value) return {};
        return { value: { value: nodeId.toString() === "ns=3;i=2" ? '"Drive"' : dictionary() } };
      }),
  } as unknown as Services; // the only part that is used
  const types = structureTypes({ Stream: BinaryStream, typeByName: findBuiltInType }, services, log);
  const buffer = Buffer.alloc(8);
  buffer.writeDoubleLE(1.5);
  const value = { dataType: 22, arrayType: 0, value: { nodeId: ua.coerceNodeId("ns=3;i=1"), buffer } };
  const place = { nodeId: ua.coerceNodeId("ns=3;s=Drive"), field: [{ name: "Speed" }] };
  const good = { value: 0, name: "Good" };
  const times = { sourceTimestamp: null, sourcePicoseconds: 0, serverTimestamp: null, serverPicoseconds: 0 };
  await types.learn([[place, { value, statusCode: good, ...times }]], never);
  return { speed: types.convert(value, place), warnings: lines.map(({ message }) => message) };
}

test("a field is decoded with the dictionary that its encoding refers to", async () => {
  expect(await speedFrom(() => Buffer.from(xml))).toEqual({ speed: { value: 1.5 }, warnings: [] });
});

test("an unreadable dictionary, or one without the type, affects only that field and is reported", async () => {
  const reason = expect.stringContaining("does not tell how its structure");
  const tooLarge = await speedFrom(() => {
    throw new AgentError("SOURCE_UNREACHABLE", "Read: the server answers BadResponseTooLarge");
  });
  expect(tooLarge.speed).toMatchObject({ reason });
  expect(tooLarge.warnings).toEqual(["how a structure is made up cannot be read"]);
  for (const content of [Buffer.from("<none/>"), "text", undefined])
    expect((await speedFrom(() => content)).speed).toMatchObject({ reason });
});

test("when the connection is lost meanwhile the value is not used", async () => {
  const lost = new AgentError("SOURCE_UNREACHABLE", "the connection to opc.tcp://plc:4840 is lost");
  await expect(
    speedFrom(() => {
      throw lost;
    }),
  ).rejects.toBe(lost);
});
