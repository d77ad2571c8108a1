// How the stack's own decoder handles the structures of three servers, and what it requests before the first value:
// node test/bench/opcua/structures.ts. The README of src/source/opcua has the result, which is why the source has its
// own decoder.
import { AttributeIds, MessageSecurityMode, OPCUAClient } from "node-opcua-client";
import { getExtraDataTypeManager, resolveDynamicExtensionObject } from "node-opcua-client-dynamic-extension-object";
import { asyncua } from "../../support/asyncua.ts";
import { milo } from "../../support/milo.ts";
import { opcuaServer } from "../../support/opcua-server.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const drive = {
  running: true,
  total: [1, 2],
  motor: { speed: 0.1, name: "M1" },
  axes: [{ speed: 1.5, name: "X" }],
  state: 4,
} as const;

using folder = temporaryFolder();
const servers = {
  "node-opcua-server": async () => {
    const server = await opcuaServer({ folder: folder.file("node-opcua") });
    await server.drive(drive);
    return server;
  },
  asyncua: () => asyncua({ folder: folder.file("asyncua") }),
  milo: () => milo({ folder: folder.file("milo") }),
};

for (const [name, start] of Object.entries(servers)) {
  await using server = await start();
  const client = OPCUAClient.create({ endpointMustExist: false, securityMode: MessageSecurityMode.None });
  await client.connect(server.url);
  const session = await client.createSession();
  let requests = 0;
  client.on("send_request", () => requests++);
  const namespaces = await session.readNamespaceArray();
  const line = namespaces.findIndex((uri) => uri.includes("test:line"));
  requests = 0;
  const began = performance.now();
  const types = await getExtraDataTypeManager(session);
  console.log(`${name}: ${requests} requests, ${Math.round(performance.now() - began)} ms before the first value`);
  for (const id of ["Drive", "Old"]) {
    const { value, statusCode } = await session.read({
      nodeId: `ns=${line};s=${id}`,
      attributeId: AttributeIds.Value,
    });
    if (!statusCode.isGood()) continue;
    await resolveDynamicExtensionObject(session, value, types);
    console.log(`  ${id}: ${JSON.stringify(value.value)}`);
  }
  await session.close();
  await client.disconnect();
}
