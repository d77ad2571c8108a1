// Publishes at an even pace and low cost, so that the agent is what is measured: packets are prepared, and only their
// identifier, time and value change. Runs in its own process.
// Arguments: port, username, password, messages a second, topics, seconds. A message's value is its number / 1,000.
// A parent with a channel gets a message at the start. It may ask how many were "sent".
// To "stop", it answers once the broker has acknowledged all.
import { connect } from "node:net";
import { generate } from "mqtt-packet";

const [port, username, password, rate, topics, seconds] = process.argv.slice(2);
const perSecond = Number(rate);
const everyMs = 5;
const socket = connect(Number(port), "127.0.0.1");
socket.setNoDelay(true);
socket.write(
  generate({
    cmd: "connect",
    protocolId: "MQTT",
    protocolVersion: 4,
    clientId: `load-${process.pid}`,
    clean: true,
    keepalive: 0,
    username: username ?? "",
    password: Buffer.from(password ?? ""),
  }),
);

// 60 bytes: {"ts":1767225600123,"v":12345.678,"unit":"C","seq":12345678}
const payloadBytes = 60;
const frames = Array.from({ length: Number(topics) }, (_, i) => {
  const topic = Buffer.from(`plant/line${String(i % 10).padStart(2, "0")}/tag${String(i).padStart(6, "0")}`);
  const length = 2 + topic.length + 2 + payloadBytes;
  const head = Buffer.from([0x32, length, topic.length >> 8, topic.length & 255]);
  if (length > 127) throw new Error("topics are too long for a length of one byte");
  const frame = Buffer.concat([head, topic, Buffer.alloc(2 + payloadBytes)]);
  return { frame, idAt: head.length + topic.length };
});

let last = perSecond * Number(seconds);
let published = 0;
let acknowledged = 0;
let packetId = 0;
let pending: Buffer = Buffer.alloc(0);
socket.on("data", (chunk) => {
  // Only the CONNACK and PUBACKs of four bytes arrive, so it is enough to count them.
  pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
  const whole = pending.length - (pending.length % 4);
  for (let at = 0; at < whole; at += 4) if (pending[at] === 0x40) acknowledged++;
  pending = pending.subarray(whole);
});

const started = performance.now();
const startedAt = Date.now();
const timer = setInterval(() => {
  const elapsed = performance.now() - started;
  const due = Math.min(Math.floor((elapsed / 1_000) * perSecond), last);
  const parts: Buffer[] = [];
  while (published < due) {
    const { frame, idAt } = frames[published % frames.length] ?? { frame: Buffer.alloc(0), idAt: 0 };
    const copy = Buffer.from(frame);
    packetId = (packetId % 65_535) + 1;
    copy.writeUInt16BE(packetId, idAt);
    // The scheduled time: after a stall, two messages of a topic would otherwise share a time, and one would replace
    // the other.
    const time = startedAt + Math.floor((published / perSecond) * 1_000);
    const text = `{"ts":${time},"v":${published / 1_000},"unit":"C","seq":${published}`;
    copy.write(`${text.padEnd(payloadBytes - 1)}}`, idAt + 2, "latin1");
    parts.push(copy);
    published++;
  }
  if (parts.length > 0) socket.write(Buffer.concat(parts));
  if (published >= last && acknowledged >= published) {
    clearInterval(timer);
    process.stdout.write(`${JSON.stringify({ published, acknowledged })}\n`);
    socket.end(() => process.send?.(published));
  }
}, everyMs);

if (process.send) {
  process.on("message", (question) => {
    if (question === "sent") process.send?.(published);
    if (question === "stop") last = published;
  });
  process.on("disconnect", () => process.exit());
  process.send("begun");
}
