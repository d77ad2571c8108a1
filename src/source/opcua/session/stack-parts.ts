// The parts of the OPC UA stack that are used, as one module: a release makes one file of it, which is read when it is needed.
// What is used of it beyond its documented interface stands here alone; `stack-parts.test.ts` fails where an update changes it.
export { BinaryStream } from "node-opcua-binary-stream";
export { OPCUACertificateManager } from "node-opcua-certificate-manager";
export * as ua from "node-opcua-client";
export { ClientSessionImpl } from "node-opcua-client/dist/private/client_session_impl.js";
export { findBuiltInType } from "node-opcua-factory";
export { defaultClientTransportFactory } from "node-opcua-transport";
