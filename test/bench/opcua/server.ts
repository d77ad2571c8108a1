// The server of the OPC UA benches, in its own process: this many variables, which all change at the same time, or
// never with an interval of 0. A parent with a channel gets the port. It may ask how many values changed under a
// subscription ("sent"), and may "stop" the changes.
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
let watched = 0;
const write = () => {
  value++;
  if (server.engine.currentSubscriptionCount > 0) watched++;
  for (const variable of variables) variable.setValueFromSource({ dataType: DataType.Double, value });
};
write();
const writing = Number(everyMs) > 0 ? setInterval(write, Number(everyMs)) : undefined;
const end = () => {
  clearInterval(writing);
  void server.shutdown(0);
};
const { port } = server.endpoints[0] ?? {};
if (process.send) {
  process.on("message", (question) => {
    if (question === "stop") clearInterval(writing);
    process.send?.(watched * variables.length);
  });
  process.on("disconnect", end);
  process.send(port);
} else {
  process.stdout.write(`${JSON.stringify({ port })}\n`);
  process.stdin.resume().on("end", end);
}
