// Publishes 60-byte JSON messages over a raw socket, evenly paced or as fast as the broker accepts them, in its own
// process.
// A library would cost more than the client that is measured. Argument: a `Load` as JSON.
import { connect } from "node:net";
import { generate, parser } from "mqtt-packet";
import type { Load } from "./load.ts";

const { host, port, username, password, qos, rate, topics, total }: Load = JSON.parse(process.argv[2] ?? "");
/** The maximum number of unacknowledged QoS 1 messages. Packet identifiers end at 65,535. */
const maxInFlight = 20_000;

const socket = connect(port, host).setNoDelay(true);
const connected = Promise.withResolvers<void>();
const drained = () => new Promise<void>((resolve) => socket.once("drain", () => resolve()));
let answers = 0;
const incoming = parser({ protocolVersion: 4 });
incoming.on("packet", (packet) => {
  if (packet.cmd === "connack") connected.resolve();
  if (packet.cmd === "puback") answers++;
});
socket.on("data", (data) => incoming.parse(data));
socket.write(
  generate({ cmd: "connect", clientId: "load", clean: true, username, password: Buffer.from(password), keepalive: 0 }),
);
await connected.promise;

const heads = Array.from({ length: topics }, (_, i) => {
  const topic = Buffer.from(`plant/line${i % 7}/machine${i}/temp`);
  const head = Buffer.alloc(4 + topic.length + 2 * qos);
  head[0] = 0x30 | (qos << 1);
  head[1] = head.length - 2 + 60;
  head.writeUInt16BE(topic.length, 2);
  topic.copy(head, 4);
  return head;
});

function message(n: number): Buffer {
  const head = heads[n % topics] ?? Buffer.alloc(0);
  const bytes = Buffer.allocUnsafe(head.length + 60).fill(32);
  head.copy(bytes);
  if (qos === 1) bytes.writeUInt16BE((n % 65_535) + 1, head.length - 2);
  bytes.write(`{"v":${n},"ts":${Date.now()},"unit":"degC"}`, head.length, "latin1");
  return bytes;
}

const begin = performance.now();
for (let sent = 0; sent < total; ) {
  const due = rate === 0 ? sent + 500 : Math.floor(((performance.now() - begin) / 1_000) * rate);
  const batch: Buffer[] = [];
  for (; sent < Math.min(due, total); sent++) batch.push(message(sent));
  if (batch.length > 0 && !socket.write(Buffer.concat(batch))) await drained();
  if (rate > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  while (qos === 1 && sent - answers > maxInFlight) await new Promise((resolve) => setTimeout(resolve, 1));
}
while (qos === 1 && answers < total) await new Promise((resolve) => setTimeout(resolve, 5));
socket.end(Buffer.from([0xe0, 0]));
