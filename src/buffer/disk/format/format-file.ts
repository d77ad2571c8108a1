// `FORMAT`: one line that says what the folder is, which buffer it belongs to, and which version can read it.
import { crc32 } from "../files/crc32.ts";
import { type Disk, readFile, replaceFile } from "../files/disk.ts";
import { formatMajor } from "./segment-header.ts";

export const formatFileName = "FORMAT";

/**
 * The stream's UUID as 32 hexadecimal digits; `missing`, `damaged`, or `newer` or `older` when only a program of that kind can
 * read the folder. One that says `older` may be damaged: older programs had another checksum.
 */
export function readFormatFile(
  disk: Disk,
  folder: string,
): { stream: string } | "missing" | "damaged" | "newer" | "older" {
  if (!disk.list(folder).includes(formatFileName)) return "missing";
  const text = new TextDecoder("latin1").decode(readFile(disk, `${folder}/${formatFileName}`));
  const match = /^(tagferry buffer (\d{1,6}) ([0-9a-f]{32}|\S*)) ([0-9a-f]{8})\n$/.exec(text);
  if (match && Number(match[2]) < formatMajor) return "older";
  if (!match || match[4] !== checksumText(match[1] ?? "")) return "damaged";
  if (Number(match[2]) > formatMajor) return "newer";
  return { stream: match[3] ?? "" };
}

export function writeFormatFile(disk: Disk, folder: string, stream: string): void {
  const line = `tagferry buffer ${formatMajor} ${stream}`;
  replaceFile(disk, folder, formatFileName, new TextEncoder().encode(`${line} ${checksumText(line)}\n`));
}

function checksumText(line: string): string {
  return crc32(new TextEncoder().encode(line)).toString(16).padStart(8, "0");
}
