// The first 4 KiB of a segment: its format, its buffer, and its position in the log.
//
//     0  magic        8     "TFSEG\r\n\x1a"
//     8  major, minor u8×2  of the format: 2, 0; another major is refused
//    10  kind         u8    0 hot (records as appended), 1 cold (rewritten by series)
//    11  checksum     u8    2: CRC-32
//    12  salt         u32   random; every record repeats it
//    16  stream       16    UUID of the buffer
//    32  first        f64   sequence number of the first point
//    40  created      f64   wall time, microseconds
//    48  generation   u32   how often the segment was rewritten
//    52  integration  u16 length, then text (at most 255 bytes)
//  4092  CRC          u32   over all bytes before
import { crc32, crc32Text } from "../files/bytes.ts";
import { type Disk, readFile, replaceFile } from "../files/disk.ts";

export const segmentHeaderBytes = 4_096;
const formatMajor = 2;
const formatMinor = 0;
const magic = Uint8Array.from([0x54, 0x46, 0x53, 0x45, 0x47, 0x0d, 0x0a, 0x1a]);

export interface SegmentHeader {
  readonly kind: "hot" | "cold";
  readonly salt: number;
  /** 32 hexadecimal digits. */
  readonly stream: string;
  readonly first: number;
  readonly created: number;
  readonly generation: number;
  readonly integration: string;
}

export function writeSegmentHeader(header: SegmentHeader): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(segmentHeaderBytes);
  const view = new DataView(bytes.buffer);
  bytes.set(magic);
  bytes[8] = formatMajor;
  bytes[9] = formatMinor;
  bytes[10] = header.kind === "cold" ? 1 : 0;
  bytes[11] = 2;
  view.setUint32(12, header.salt, true);
  bytes.set(Buffer.from(header.stream, "hex").subarray(0, 16), 16);
  view.setFloat64(32, header.first, true);
  view.setFloat64(40, header.created, true);
  view.setUint32(48, header.generation, true);
  const integration = new TextEncoder().encode(header.integration).subarray(0, 255);
  view.setUint16(52, integration.length, true);
  bytes.set(integration, 54);
  view.setUint32(4_092, crc32(bytes, 0, 4_092), true);
  return bytes;
}

/** The header, or `damaged`; `newer` or `older` if only such a version of the program can read the segment. */
export function readSegmentHeader(bytes: Uint8Array): SegmentHeader | "damaged" | "newer" | "older" {
  if (bytes.length < segmentHeaderBytes || magic.some((byte, i) => bytes[i] !== byte)) return "damaged";
  // Checked before the checksum, which older versions computed differently. No format had the number 0.
  if (bytes[8]! > 0 && bytes[8]! < formatMajor) return "older";
  const view = new DataView(bytes.buffer, bytes.byteOffset, segmentHeaderBytes);
  if (view.getUint32(4_092, true) !== crc32(bytes, 0, 4_092)) return "damaged";
  if (bytes[8]! > formatMajor) return "newer";
  return {
    kind: bytes[10] === 1 ? "cold" : "hot",
    salt: view.getUint32(12, true),
    stream: Buffer.from(bytes.subarray(16, 32)).toString("hex"),
    first: view.getFloat64(32, true),
    created: view.getFloat64(40, true),
    generation: view.getUint32(48, true),
    integration: new TextDecoder().decode(bytes.subarray(54, 54 + Math.min(255, view.getUint16(52, true)))),
  };
}

/** `seg-0000000000001234.log`. Further segments at the same position get a suffix: `-1`, `-2`. */
export function segmentName(first: number, attempt: number): string {
  const name = `seg-${String(first).padStart(16, "0")}`;
  return attempt === 0 ? `${name}.log` : `${name}-${attempt}.log`;
}

export function parseSegmentName(name: string): { readonly first: number; readonly attempt: number } | undefined {
  const match = /^seg-(\d{16})(?:-(\d{1,6}))?\.log$/.exec(name);
  const first = Number(match?.[1]);
  // Sequence numbers above 2^53 are not exact.
  return match && Number.isSafeInteger(first) ? { first, attempt: Number(match[2] ?? 0) } : undefined;
}

// `FORMAT`: one line with the version of the format and the UUID of the buffer.

export const formatFileName = "FORMAT";

/**
 * The buffer's UUID as 32 hexadecimal digits, or `missing` or `damaged`; `newer` or `older` if only such a version can
 * read the folder. An `older` file may also be damaged: its checksum has another kind and is not verified.
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

const checksumText = (line: string) => crc32Text(new TextEncoder().encode(line));
