// Node's HTTP module without its optional parts. An ES module import evaluates all exports, among them WebSocket, which
// loads the built-in fetch. That costs 12 MB of memory on a gateway.

export const http = process.getBuiltinModule("node:http");
