// The modules of the OPC UA stack that the agent uses, as one module: a release bundles them into one file, loaded on
// demand.
// All uses beyond the stack's documented interface are listed here. `stack-parts.test.ts` fails if an update changes
// them.
export { BinaryStream } from "node-opcua-binary-stream";
export { OPCUACertificateManager } from "node-opcua-certificate-manager";
export * as ua from "node-opcua-client";
export { ClientSessionImpl } from "node-opcua-client/dist/private/client_session_impl.js";
export { findBuiltInType } from "node-opcua-factory";
export { defaultClientTransportFactory } from "node-opcua-transport";
