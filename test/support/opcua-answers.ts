// A proxy that changes the answers of an OPC UA server without security, such as those with a certain text in a value.
import { connect, createServer } from "node:net";

/** What happens to an answer: `inflate` makes it larger than any limit, `abort` ends it after its first chunk. */
export type Change = "inflate" | "abort" | ((body: Buffer) => Buffer);

export interface AnswerProxy extends Disposable {
  readonly port: number;
  /** How many answers were changed. */
  readonly changed: number;
}

/** The header of a chunk: type and length, channel and token, sequence number and request (OPC 10000-6, 6.7.2). */
const headerBytes = 24;
const fillerBytes = 65_000;

/** `change` returns how to change an answer; undefined: it is passed on as it is. */
export async function answerProxy(
  target: number,
  change: (body: Buffer) => Change | undefined,
  inflatedBytes: number,
): Promise<AnswerProxy> {
  let changed = 0;
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const [from, to] of [[client, upstream] as const, [upstream, client] as const])
      from.on("error", () => {}).on("close", () => to.destroy());
    client.on("data", (data) => upstream.write(data));
    let received = Buffer.alloc(0);
    let message: Buffer[] = [];
    let sequence: number | undefined;
    const send = (head: Buffer, final: "C" | "F" | "A", body: Buffer) => {
      const chunk = Buffer.concat([head.subarray(0, headerBytes), body]);
      chunk.write(final, 3, "latin1");
      chunk.writeUInt32LE(chunk.length, 4);
      sequence = (sequence ?? 0) + 1;
      chunk.writeUInt32LE(sequence, 16);
      client.write(chunk);
    };
    const pass = (chunk: Buffer) => {
      if (chunk.toString("latin1", 0, 3) !== "MSG") {
        // The answer to OpenSecureChannel has the sequence number eight bytes before its body, behind three texts.
        if (chunk.toString("latin1", 0, 3) === "OPN") sequence = chunk.readUInt32LE(24 + chunk.readInt32LE(12));
        client.write(chunk);
        return;
      }
      message.push(chunk);
      if (chunk.toString("latin1", 3, 4) === "C") return;
      const body = Buffer.concat(message.map((each) => each.subarray(headerBytes)));
      const how = change(body);
      if (how) changed++;
      const pieces = message.map((each) => each.subarray(headerBytes));
      message = [];
      if (how === "inflate") {
        for (let sent = 0; sent <= inflatedBytes; sent += fillerBytes) send(chunk, "C", Buffer.alloc(fillerBytes));
        send(chunk, "F", body);
      } else if (how === "abort") {
        send(chunk, "C", body);
        const error = Buffer.alloc(8);
        error.writeUInt32LE(0x80_b9_00_00); // BadResponseTooLarge
        error.writeInt32LE(-1, 4);
        send(chunk, "A", error);
      } else if (how) send(chunk, "F", how(body));
      else for (const [i, piece] of pieces.entries()) send(chunk, i < pieces.length - 1 ? "C" : "F", piece);
    };
    upstream.on("data", (data) => {
      received = Buffer.concat([received, data]);
      for (let length = 0; received.length >= 8; received = received.subarray(length)) {
        length = received.readUInt32LE(4);
        if (received.length < length) break;
        pass(received.subarray(0, length));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : 0,
    get changed() {
      return changed;
    },
    [Symbol.dispose]: () => void server.close(),
  };
}
