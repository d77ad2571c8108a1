// Finds the end of an encoded Variant without decoding it (OPC 10000-6, 5.2.2), so that a value that the stack cannot
// decode does not hide the values behind it in the same message. Pure.
import type { BinaryStream } from "node-opcua-binary-stream";
import { builtIn, builtInTypes } from "./value.ts";

/** Bytes of the built-in types of fixed size, from Boolean to Double, DateTime, Guid and StatusCode. */
const sizes: ReadonlyMap<number, number> = new Map([
  ...[1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8].map((size, i) => [i + 1, size] as const),
  [13, 8],
  [14, 16],
  [19, 4],
]);
/** Types up to this number are reserved and encoded like a ByteString. */
const lastReserved = 31;

/** Moves the stream behind the Variant. Throws a RangeError if the bytes are no Variant. */
export function skipVariant(stream: BinaryStream): void {
  const mask = stream.readUInt8();
  const type = mask & 0x3f;
  const count = mask & 0x80 ? stream.readInteger() : 1;
  const size = sizes.get(type);
  if (size !== undefined) skip(stream, size * Math.max(0, count));
  else if (type !== 0) for (let i = 0; i < count; i++) skipValue(stream, type);
  if (mask & 0x40) skip(stream, 4 * Math.max(0, stream.readInteger()));
}

function skipValue(stream: BinaryStream, type: number): void {
  const size = sizes.get(type);
  if (size !== undefined) return skip(stream, size);
  switch (type) {
    case builtInTypes["NodeId"]:
    case builtInTypes["ExpandedNodeId"]:
      return skipNodeId(stream);
    case builtInTypes["QualifiedName"]:
      skip(stream, 2);
      return skipText(stream);
    case builtInTypes["LocalizedText"]:
      return skipFields(stream, [skipText, skipText]);
    case builtIn.structure:
      skipNodeId(stream);
      return stream.readUInt8() === 0 ? undefined : skipText(stream);
    case builtIn.dataValue:
      return skipDataValue(stream);
    case builtIn.variant:
      return skipVariant(stream);
    case builtInTypes["DiagnosticInfo"]: {
      const index = (each: BinaryStream) => skip(each, 4);
      const nested = (each: BinaryStream) => skipValue(each, type);
      return skipFields(stream, [index, index, index, index, skipText, index, nested]);
    }
    default:
      if (type > lastReserved) throw new RangeError(`there is no built-in type ${type}`);
      return skipText(stream);
  }
}

/** Skips the fields whose bits are set in the byte before them. */
function skipFields(stream: BinaryStream, fields: readonly ((stream: BinaryStream) => void)[]): void {
  const mask = stream.readUInt8();
  for (const [bit, field] of fields.entries()) if (mask & (1 << bit)) field(stream);
}

function skipDataValue(stream: BinaryStream): void {
  const mask = stream.readUInt8();
  if (mask & 1) skipVariant(stream);
  // Status, source time, its picoseconds, server time, its picoseconds: in this order, not in that of the bits.
  const parts = [[2, 4] as const, [4, 8] as const, [16, 2] as const, [8, 8] as const, [32, 2] as const];
  for (const [bit, size] of parts) if (mask & bit) skip(stream, size);
}

/** By the kind of encoding: the bytes of namespace and identifier, and whether a text follows as identifier. */
const nodeIds: readonly (readonly [bytes: number, text: boolean])[] = [
  [1, false],
  [3, false],
  [6, false],
  [2, true],
  [18, false],
  [2, true],
];

function skipNodeId(stream: BinaryStream): void {
  const mask = stream.readUInt8();
  const kind = nodeIds[mask & 0x3f];
  if (!kind) throw new RangeError(`there is no NodeId of kind ${mask & 0x3f}`);
  skip(stream, kind[0]);
  if (kind[1]) skipText(stream);
  if (mask & 0x80) skipText(stream);
  if (mask & 0x40) skip(stream, 4);
}

/** A String, ByteString or XmlElement, or the body of a structure. */
function skipText(stream: BinaryStream): void {
  skip(stream, Math.max(0, stream.readInteger()));
}

function skip(stream: BinaryStream, bytes: number): void {
  if (bytes > stream.buffer.length - stream.length) throw new RangeError("the message ends within a value");
  stream.length += bytes;
}
