// Identifiers of resources: 12 bytes (seconds, machine, counter) in lower-case base32hex, so that they sort by creation.
import { randomBytes } from "node:crypto";

const alphabet = "0123456789abcdefghijklmnopqrstuv";

/** Makes identifiers that do not repeat, across restarts and machines. */
export function xidGenerator(): (seconds: number) => string {
  const machine = randomBytes(5);
  let counter = randomBytes(3).readUIntBE(0, 3);
  return (seconds) => {
    const bytes = Buffer.alloc(12);
    bytes.writeUInt32BE(seconds >>> 0, 0);
    machine.copy(bytes, 4);
    counter = (counter + 1) & 0xffffff;
    bytes.writeUIntBE(counter, 9, 3);
    return base32hex(bytes);
  };
}

function base32hex(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  let held = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    bits += 8;
    for (; bits >= 5; bits -= 5) text += alphabet.charAt((held >>> (bits - 5)) & 31);
    held &= (1 << bits) - 1;
  }
  return bits > 0 ? text + alphabet.charAt((held << (5 - bits)) & 31) : text;
}
