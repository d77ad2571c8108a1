// A broker that a test controls packet by packet, on real sockets and without sessions.
import type { AddressInfo, Socket } from "node:net";
import { createServer } from "node:net";
import { generate, type Packet, parser } from "mqtt-packet";

/** One connection as the broker sees it. */
export interface ScriptedClient {
  /** Packets in the order of arrival. */
  readonly packets: readonly Packet[];
  readonly socket: Socket;
  send(...packets: readonly Packet[]): void;
  /** Resolves with the first packet of this kind, including earlier ones. */
  received<Command extends Packet["cmd"]>(command: Command): Promise<Extract<Packet, { cmd: Command }>>;
}

export interface ScriptedBroker extends AsyncDisposable {
  readonly url: string;
  readonly connections: readonly ScriptedClient[];
}

/** `onPacket` is called for every packet. `version` applies to the packets sent and received. */
export async function scriptedBroker(
  onPacket: (packet: Packet, client: ScriptedClient, connection: number) => void,
  { version = 5 }: { readonly version?: 3 | 4 | 5 } = {},
): Promise<ScriptedBroker> {
  const connections: ScriptedClient[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    const packets: Packet[] = [];
    const waiting: (() => void)[] = [];
    const client: ScriptedClient = {
      packets,
      socket,
      send: (...sent) => {
        socket.write(Buffer.concat(sent.map((packet) => generate(packet, { protocolVersion: version }))));
      },
      async received(command) {
        for (;;) {
          const found = packets.find((packet) => packet.cmd === command);
          if (found) return found as Extract<Packet, { cmd: typeof command }>; // of this command, as just checked
          await new Promise<void>((resolve) => waiting.push(resolve));
        }
      },
    };
    const index = connections.push(client) - 1;
    const incoming = parser({ protocolVersion: version });
    incoming.on("packet", (packet) => {
      packets.push(packet);
      for (const wake of waiting.splice(0)) wake();
      onPacket(packet, client, index);
    });
    // Bytes that are not MQTT, such as a ClientHello, close the connection, as a broker would.
    incoming.on("error", () => socket.destroy());
    socket.on("data", (data) => incoming.parse(data));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // bound to a TCP port
  return {
    url: `mqtt://127.0.0.1:${port}`,
    connections,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Answers CONNECT, SUBSCRIBE, UNSUBSCRIBE and PINGREQ as a well-behaved MQTT 5 broker does. */
export function politeAnswer(packet: Packet, client: ScriptedClient, { sessionPresent = false } = {}): void {
  if (packet.cmd === "connect") client.send({ cmd: "connack", reasonCode: 0, returnCode: 0, sessionPresent });
  else if (packet.cmd === "subscribe") {
    const granted = packet.subscriptions.map(({ qos }) => qos);
    client.send({ cmd: "suback", messageId: packet.messageId ?? 0, granted });
  } else if (packet.cmd === "unsubscribe") {
    const granted = packet.unsubscriptions.map(() => 0);
    client.send({ cmd: "unsuback", messageId: packet.messageId ?? 0, granted });
  } else if (packet.cmd === "pingreq") client.send({ cmd: "pingresp" });
}
