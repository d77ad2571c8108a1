// The undocumented parts of the OPC UA stack that the driver uses. An update that changes one fails here.
import { expect, test } from "vitest";
import {
  BinaryStream,
  ClientSessionImpl,
  defaultClientTransportFactory,
  findBuiltInType,
  OPCUACertificateManager,
  ua,
} from "../../../../src/source/opcua/stack/stack-parts.ts";
import { builtInNames } from "../../../../src/source/opcua/types/value.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

test("the client and its session have the methods and fields used to resume a session and to guard a login", () => {
  using folder = temporaryFolder();
  const rootFolder = folder.path;
  const client = ua.OPCUAClient.create({ clientCertificateManager: new OPCUACertificateManager({ rootFolder }) });
  const methods = ["_activateSession", "createUserIdentityToken", "reactivateSession"];
  for (const name of methods) expect(Reflect.get(client, name), name).toBeTypeOf("function");
  expect(Reflect.get(client, "createUserIdentityToken"), "context, identity, callback").toHaveLength(3);
  expect(client).toHaveProperty("_serverEndpoints");
  // as in `takeUp`
  const session = new ClientSessionImpl(client as unknown as ConstructorParameters<typeof ClientSessionImpl>[0]);
  expect(Reflect.get(session, "_performMessageTransaction")).toBeTypeOf("function");
  for (const name of ["_client", "name", "sessionId", "serverNonce", "serverCertificate"])
    expect(session, name).toHaveProperty(name);
});

test("the limits of a connection are set by a method of the transport", () => {
  const transport = defaultClientTransportFactory.create({});
  expect(Reflect.get(transport, "setLimits")).toBeTypeOf("function");
});

test("messages are put together by methods of the message builder", () => {
  for (const name of ["feed", "_read_headersEx", "_decodeMessageBody"])
    expect(Reflect.get(ua.MessageBuilder.prototype, name), name).toBeTypeOf("function");
});

test("values of each built-in type can be decoded by its name", () => {
  for (const name of builtInNames.slice(1))
    expect(Reflect.get(findBuiltInType(name), "decode"), name).toBeTypeOf("function");
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(1.5);
  const stream = new BinaryStream(bytes);
  expect(findBuiltInType("Double").decode?.(stream)).toBe(1.5);
  expect(() => stream.checkArrayLength(1)).toThrow("bytes remaining");
});
