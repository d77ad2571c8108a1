// The parts of the OPC UA stack that are used, as one module: a release makes one file of it, which is read when it is needed.
export { OPCUACertificateManager } from "node-opcua-certificate-manager";
export * as ua from "node-opcua-client";
export { ClientSessionImpl } from "node-opcua-client/dist/private/client_session_impl.js";
export { defaultClientTransportFactory } from "node-opcua-transport";
