// Changes what a server of the tests does with the requests of one service.
import type { OPCUAServer } from "node-opcua-server";

interface Message {
  readonly request: { endpointUrl?: string | null };
}
type Handler = (this: OPCUAServer, message: Message, channel: unknown) => unknown;

/** Puts `act` before what the server does with a request; where it gives false the request stays without an answer. */
export function beforeRequest(server: OPCUAServer, request: string, act: (message: Message) => boolean) {
  const name = `_on_${request}Request`;
  const handle = Reflect.get(server, name) as Handler; // where the server has it
  Reflect.set(server, name, function (this: OPCUAServer, message: Message, channel: unknown) {
    return act(message) ? handle.call(this, message, channel) : undefined;
  });
}
