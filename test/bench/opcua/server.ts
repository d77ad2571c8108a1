// The other side of the OPC UA bench, in a process of its own: as many variables as told, all changing at the same time.
import { OPCUACertificateManager } from "node-opcua-certificate-manager";
import { DataType } from "node-opcua-client";
import { OPCUAServer } from "node-opcua-server";

const [folder = "", many = "10000", everyMs = "1000"] = process.argv.slice(2);
const certificates = new OPCUACertificateManager({
  rootFolder: folder,
  automaticallyAcceptUnknownCertificate: true,
  disableFileWatchers: true,
});
await certificates.initialize();
const server = new OPCUAServer({
  host: "127.0.0.1",
  hostname: "127.0.0.1",
  port: 0,
  serverCertificateManager: certificates,
  userCertificateManager: certificates,
});
await server.initialize();
await server.start();
const space = server.engine.addressSpace;
if (!space) throw new TypeError("an initialized server has an address space");
const own = space.registerNamespace("urn:tagferry:bench");
const line = own.addObject({ browseName: "Bench", organizedBy: space.rootFolder.objects });
const variables = Array.from({ length: Number(many) }, (_, i) =>
  own.addVariable({ componentOf: line, browseName: `V${i}`, nodeId: `s=V${i}`, dataType: "Double" }),
);
let value = 0;
const write = () => {
  value++;
  for (const variable of variables) variable.setValueFromSource({ dataType: DataType.Double, value });
};
write();
const writing = setInterval(write, Number(everyMs));
process.stdout.write(`${JSON.stringify({ port: server.endpoints[0]?.port })}\n`);
process.stdin.resume().on("end", () => {
  clearInterval(writing);
  void server.shutdown(0);
});
