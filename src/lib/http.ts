// Node's HTTP modules without what they drag along: imported as ES modules, all their exports are evaluated, WebSocket
// among them, and that loads the built-in fetch: 12 MB of memory that a gateway can use better.

export const http = process.getBuiltinModule("node:http");
export const https = process.getBuiltinModule("node:https");
