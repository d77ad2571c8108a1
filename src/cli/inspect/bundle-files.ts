// Builds a ustar archive (POSIX.1-1988). Pure.
// Each file has a header of 512 bytes; its content is zero-padded to a multiple of 512. Two empty blocks end the
// archive. Names have at most 100 bytes, files less than 8 GiB.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Secret } from "../../core/secret.ts";

interface TarFile {
  readonly name: string;
  readonly data: Uint8Array;
}

const blockBytes = 512;

/** `seconds`: modification time since 1970. Throws `RangeError` if a name is too long. */
export function tar(files: readonly TarFile[], seconds: number): Buffer {
  const parts = files.flatMap(({ name, data }) => [
    header(name, data.length, seconds),
    data,
    Buffer.alloc((blockBytes - (data.length % blockBytes)) % blockBytes),
  ]);
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]);
}

function header(name: string, size: number, seconds: number): Buffer {
  const block = Buffer.alloc(blockBytes);
  if (Buffer.byteLength(name) > 100) throw new RangeError(`too long for a tar archive: ${name}`);
  const octal = (value: number, at: number, digits: number) =>
    block.write(`${Math.floor(value).toString(8).padStart(digits, "0")}\0`, at);
  block.write(name, 0);
  octal(0o600, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size, 124, 11);
  octal(seconds, 136, 11);
  // The checksum counts its own field as blanks.
  block.write("        ", 148);
  block.write("0", 156);
  block.write("ustar\x0000", 257);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

/** Masking shorter secrets would destroy half of the text. */
const shortest = 4;

/** All secrets in `value`, at any depth. */
export function secretsIn(value: unknown, found: Set<string> = new Set(), seen: Set<unknown> = new Set()): Set<string> {
  if (value instanceof Secret) found.add(value.reveal());
  else if (typeof value === "object" && value !== null && !seen.has(value)) {
    seen.add(value);
    for (const inner of Object.values(value)) secretsIn(inner, found, seen);
  }
  return found;
}

/** Replaces the secrets by `***`: literal, base64, hexadecimal, URL-encoded and JSON-escaped. */
export function scrubber(secrets: Iterable<string>): (text: string) => string {
  const forms = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < shortest) continue;
    const bytes = Buffer.from(secret);
    const base64 = bytes.toString("base64");
    const json = JSON.stringify(secret).slice(1, -1);
    const all = [secret, base64, base64.replace(/=+$/, ""), bytes.toString("base64url"), bytes.toString("hex")];
    all.push(bytes.toString("hex").toUpperCase());
    for (const form of [...all, encodeURIComponent(secret), json]) forms.add(form);
  }
  if (forms.size === 0) return (text) => text;
  // Longest first, since a secret may be the prefix of another.
  const ordered = [...forms].toSorted((a, b) => b.length - a.length);
  const any = new RegExp(ordered.map((form) => form.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "g");
  return (text) => text.replace(any, "***");
}

const unit = "tagferry";
const lines = 5_000;

/** Rejects if the journal is missing, unreadable for this user, or empty. */
export async function journalLines(signal: AbortSignal): Promise<string> {
  const args = ["--unit", unit, "--lines", String(lines), "--output", "cat", "--no-pager", "--quiet"];
  const { stdout } = await promisify(execFile)("journalctl", args, { signal, timeout: 20_000, maxBuffer: 2 ** 26 });
  if (stdout.trim() === "") throw new Error("the journal has nothing");
  return stdout;
}
