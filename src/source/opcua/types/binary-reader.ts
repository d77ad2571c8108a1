// Reads values from bytes in the OPC UA Binary encoding (OPC 10000-6, 5.2), one after the other. Little-endian; a length
// of -1 is null. Whatever is no value that can be stored is passed over, so that what follows is found.
import type { VariantLike } from "./value.ts";

/** Numbers of the built-in types (OPC 10000-6, 5.1.2) that are spoken of by name. */
export const builtIn = { byteString: 15, structure: 22, dataValue: 23, variant: 24, diagnosticInfo: 25 } as const;

/** What stands in an ExtensionObject (5.2.2.15). */
export interface EncodedStructure {
  /** NodeId of its encoding, as in `ns=2;i=3001`. */
  readonly encoding: string;
  readonly body: Uint8Array;
}

const ticksPerMs = 10_000n;
const ticksTo1970 = 116_444_736_000_000_000n;
const mostNesting = 32;

/** Throws `RangeError` where the bytes end too soon, or nest deeper than any structure does. */
export class BinaryReader {
  readonly #view: DataView;
  #at = 0;
  readonly #nesting: number;

  /** `nesting`: how many readers this one stands in. */
  constructor(bytes: Uint8Array, nesting = 0) {
    if (nesting > mostNesting) throw new RangeError(`nested more than ${mostNesting} deep`);
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#nesting = nesting;
  }

  get nesting(): number {
    return this.#nesting;
  }

  get left(): number {
    return this.#view.byteLength - this.#at;
  }

  uint8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  int32(): number {
    return this.#view.getInt32(this.#take(4), true);
  }

  uint32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  /** Number of elements that follow, 0 where there is no array. */
  length(): number {
    const length = this.int32();
    // Each takes a byte at least: what claims more is no array.
    if (length > this.left) throw new RangeError(`${length} elements in ${this.left} bytes`);
    return Math.max(0, length);
  }

  /** Text, or undefined. */
  string(): string | undefined {
    const length = this.int32();
    if (length < 0) return undefined;
    const at = this.#take(length);
    return new TextDecoder().decode(new Uint8Array(this.#view.buffer, this.#view.byteOffset + at, length));
  }

  structure(): EncodedStructure | undefined {
    const encoding = this.#nodeId();
    const form = this.uint8();
    if (form === 0) return undefined;
    const length = Math.max(0, this.int32());
    const at = this.#take(length);
    const body = new Uint8Array(this.#view.buffer, this.#view.byteOffset + at, length);
    // The other form is XML.
    return form === 1 ? { encoding, body } : undefined;
  }

  /** A Variant as such (5.2.2.16). */
  variant(): VariantLike {
    const mask = this.uint8();
    const dataType = mask & 0x3f;
    if (dataType === 0) return { dataType: 0, arrayType: 0, value: null };
    if ((mask & 0x80) === 0) return { dataType, arrayType: 0, value: this.value(dataType) };
    const value = this.array(dataType);
    if ((mask & 0x40) === 0) return { dataType, arrayType: 1, value };
    return { dataType, arrayType: 2, value, dimensions: this.array(6).map(Number) };
  }

  array(dataType: number): unknown[] {
    const values: unknown[] = [];
    for (let left = this.length(); left > 0; left--) values.push(this.value(dataType));
    return values;
  }

  /**
   * One value of a built-in type, in the form that `convert` takes. Structures stand as `EncodedStructure`; of what cannot
   * be stored comes null.
   */
  value(dataType: number): unknown {
    const view = this.#view;
    switch (dataType) {
      case 1:
        return this.uint8() !== 0;
      case 2:
        return view.getInt8(this.#take(1));
      case 3:
        return this.uint8();
      case 4:
        return view.getInt16(this.#take(2), true);
      case 5:
        return view.getUint16(this.#take(2), true);
      case 6:
        return this.int32();
      case 7:
        return this.uint32();
      case 8:
      case 9: {
        const low = this.uint32();
        return [this.uint32(), low];
      }
      case 10:
        return view.getFloat32(this.#take(4), true);
      case 11:
        return view.getFloat64(this.#take(8), true);
      case 12:
        return this.string() ?? null;
      case 13:
        return new Date(Number((view.getBigInt64(this.#take(8), true) - ticksTo1970) / ticksPerMs));
      case 14:
        this.#take(16);
        return null;
      case builtIn.byteString:
      case 16:
        this.#take(Math.max(0, this.int32()));
        return null;
      case 17:
        this.#nodeId();
        return null;
      case 18:
        this.#expandedNodeId();
        return null;
      case 20:
        this.#take(2);
        return { name: this.string() ?? null };
      case 21:
        return this.#localizedText();
      case 19:
        return { name: `0x${this.uint32().toString(16).padStart(8, "0")}` };
      case builtIn.structure:
        return this.structure() ?? null;
      case builtIn.dataValue:
        return this.#dataValue();
      case builtIn.variant:
        return new BinaryReader(this.#rest(), this.#nesting + 1).#nested(this);
      case builtIn.diagnosticInfo:
        this.#diagnosticInfo(0);
        return null;
      default:
        throw new RangeError(`there is no built-in type ${dataType}`);
    }
  }

  /** Reads a Variant in the place of `outer`, one level deeper. */
  #nested(outer: BinaryReader): VariantLike {
    const variant = this.variant();
    outer.#take(this.#at);
    return variant;
  }

  #rest(): Uint8Array {
    return new Uint8Array(this.#view.buffer, this.#view.byteOffset + this.#at, this.left);
  }

  #nodeId(): string {
    return this.#identifier(this.uint8() & 0x3f);
  }

  #expandedNodeId(): void {
    const form = this.uint8();
    this.#identifier(form & 0x3f);
    if ((form & 0x80) !== 0) this.string();
    if ((form & 0x40) !== 0) this.#take(4);
  }

  #identifier(form: number): string {
    const view = this.#view;
    if (form === 0) return `ns=0;i=${this.uint8()}`;
    if (form === 1) return `ns=${this.uint8()};i=${view.getUint16(this.#take(2), true)}`;
    const namespace = view.getUint16(this.#take(2), true);
    if (form === 2) return `ns=${namespace};i=${this.uint32()}`;
    if (form === 3) return `ns=${namespace};s=${this.string() ?? ""}`;
    const at = this.#take(form === 4 ? 16 : 4);
    if (form === 4) return `ns=${namespace};g=${guid(view, at)}`;
    if (form !== 5) throw new RangeError(`there is no form ${form} of a NodeId`);
    const length = Math.max(0, view.getInt32(at, true));
    const bytes = new Uint8Array(view.buffer, view.byteOffset + this.#take(length), length);
    return `ns=${namespace};b=${Buffer.from(bytes).toString("base64")}`;
  }

  #localizedText(): { text: string | null } {
    const mask = this.uint8();
    if ((mask & 1) !== 0) this.string();
    return { text: (mask & 2) !== 0 ? (this.string() ?? null) : null };
  }

  /** The value of a DataValue; its times and status belong to what it stands in. */
  #dataValue(): unknown {
    const mask = this.uint8();
    const value = (mask & 0x01) !== 0 ? this.value(builtIn.variant) : null;
    const sizes = [
      [0x02, 4],
      [0x04, 8],
      [0x10, 2],
      [0x08, 8],
      [0x20, 2],
    ] as const;
    for (const [bit, bytes] of sizes) if ((mask & bit) !== 0) this.#take(bytes);
    return value;
  }

  #diagnosticInfo(nesting: number): void {
    if (nesting > mostNesting) throw new RangeError(`nested more than ${mostNesting} deep`);
    const mask = this.uint8();
    for (const bit of [0x01, 0x02, 0x08, 0x04]) if ((mask & bit) !== 0) this.#take(4);
    if ((mask & 0x10) !== 0) this.string();
    if ((mask & 0x20) !== 0) this.#take(4);
    if ((mask & 0x40) !== 0) this.#diagnosticInfo(nesting + 1);
  }

  /** Where the next `bytes` begin. */
  #take(bytes: number): number {
    const at = this.#at;
    if (bytes > this.left) throw new RangeError(`${bytes} bytes wanted, ${this.left} left`);
    this.#at += bytes;
    return at;
  }
}

function guid(view: DataView, at: number): string {
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0").toUpperCase();
  const byte = (i: number) => hex(view.getUint8(at + i), 2);
  const groups = [
    hex(view.getUint32(at, true), 8),
    hex(view.getUint16(at + 4, true), 4),
    hex(view.getUint16(at + 6, true), 4),
  ];
  return [...groups, byte(8) + byte(9), [10, 11, 12, 13, 14, 15].map(byte).join("")].join("-");
}
