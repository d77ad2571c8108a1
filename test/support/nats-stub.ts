// A NATS server that accepts agents and answers what they publish with a fixed text.
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";

/** `answer`: to a message with this reply subject, which the subscription `id` receives. Undefined: none has one. */
export async function natsStub(name: string, answer: (reply: string, id: string | undefined) => string) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const subscriptions: (readonly [prefix: string, id: string])[] = [];
    const about = {
      server_id: name,
      server_name: name,
      version: "2.15.2",
      proto: 1,
      headers: true,
      max_payload: 2 ** 20,
    };
    socket.write(`INFO ${JSON.stringify(about)}\r\n`);
    // It passes on the errors of the socket, such as a connection that the agent resets.
    const lines = createInterface({ input: socket }).on("error", () => {});
    lines.on("line", (line) => {
      const words = line.split(" ");
      const [verb, subject = "", reply = ""] = words;
      if (verb === "PING") socket.write("PONG\r\n");
      if (verb === "SUB") subscriptions.push([subject.replace(/[*>]$/, ""), words.at(-1) ?? ""]);
      const [, id] = subscriptions.find(([prefix]) => reply.startsWith(prefix)) ?? [];
      if (verb === "PUB" || verb === "HPUB") socket.write(answer(reply, id));
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
