// Reads a tcpdump capture of a loopback interface: the bytes that each client sent to its server, in order. References:
// pcap
// file format, RFC 791, 793, 768; link type Ethernet, IPv4 without fragments.
import { readFile } from "node:fs/promises";

/** The bytes of one direction of a connection, or between two UDP ports, from the side that sent first. */
export interface ClientTraffic {
  readonly transport: "tcp" | "udp";
  readonly server: number;
  /** The stream in one piece, or the datagrams. */
  readonly pieces: readonly Uint8Array[];
}

const tcp = 6;
const udp = 17;
const synOnly = 0b10;
const synAndAck = 0b1_0010;

interface Flow {
  readonly transport: "tcp" | "udp";
  readonly server: number;
  readonly pieces: Buffer[];
  /** The sequence number of the next byte. */
  next: number;
}

export async function clientTraffic(file: string): Promise<readonly ClientTraffic[]> {
  const all: Flow[] = [];
  const open = new Map<string, Flow>();
  for (const packet of packets(await readFile(file))) {
    const ip = packet.subarray(14);
    if (packet.readUInt16BE(12) !== 0x08_00 || ip[9] === undefined) continue;
    const payload = ip.subarray((ip[0]! & 0x0f) * 4, ip.readUInt16BE(2));
    const [from, to] = [payload.readUInt16BE(0), payload.readUInt16BE(2)];
    const key = `${ip[9]} ${from} ${to}`;
    const begin = (transport: "tcp" | "udp", next: number) => {
      const flow: Flow = { transport, server: to, pieces: [], next };
      open.set(key, flow);
      all.push(flow);
      return flow;
    };
    if (ip[9] === udp) {
      if (open.has(`${udp} ${to} ${from}`)) continue;
      (open.get(key) ?? begin("udp", 0)).pieces.push(payload.subarray(8));
    }
    if (ip[9] !== tcp) continue;
    const sequence = payload.readUInt32BE(4);
    const flags = payload[13]! & synAndAck;
    if (flags === synOnly) begin("tcp", (sequence + 1) >>> 0);
    const flow = open.get(key);
    if (!flow) continue;
    const bytes = payload.subarray((payload[12]! >> 4) * 4);
    // A retransmission: skips the known part.
    const known = (flow.next - sequence) >>> 0;
    if (known >= bytes.length) continue;
    flow.pieces.push(bytes.subarray(known));
    flow.next = (sequence + bytes.length) >>> 0;
  }
  return all.map((flow) => ({
    transport: flow.transport,
    server: flow.server,
    pieces: flow.transport === "tcp" ? [Buffer.concat(flow.pieces)] : flow.pieces,
  }));
}

function* packets(file: Buffer): Generator<Buffer> {
  if (file.readUInt32LE(0) !== 0xa1_b2_c3_d4) throw new Error("no pcap file of this machine");
  for (let at = 24; at + 16 <= file.length; ) {
    const length = file.readUInt32LE(at + 8);
    yield file.subarray(at + 16, at + 16 + length);
    at += 16 + length;
  }
}
