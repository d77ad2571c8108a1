// Node's HTTP module without what it drags along: imported as an ES module, all its exports are evaluated, WebSocket
// among them, and that loads the built-in fetch: 12 MB of memory that a gateway can use better.

export const http = process.getBuiltinModule("node:http");
