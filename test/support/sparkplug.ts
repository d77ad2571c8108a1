// Writes Sparkplug B payloads as an edge node does, by the protobuf definition of the specification.

export interface MetricText {
  readonly name?: string;
  readonly alias?: number;
  /** Milliseconds since 1970. */
  readonly timestamp?: number;
  readonly datatype?: number;
  readonly isHistorical?: boolean;
  readonly isTransient?: boolean;
  readonly isNull?: boolean;
  readonly int?: number;
  readonly long?: number | bigint;
  readonly float?: number;
  readonly double?: number;
  readonly boolean?: boolean;
  readonly string?: string;
  readonly bytes?: Uint8Array;
  readonly dataset?: Uint8Array;
  readonly template?: readonly MetricText[];
  readonly properties?: Readonly<Record<string, number | string>>;
}

export interface PayloadText {
  readonly timestamp?: number;
  readonly seq?: number;
  readonly metrics?: readonly MetricText[];
  readonly uuid?: string;
  readonly body?: Uint8Array;
}

/** The bytes of a payload. */
export function sparkplugPayload({ timestamp, seq, metrics = [], uuid, body }: PayloadText): Buffer {
  return Buffer.concat([
    integer(1, timestamp),
    ...metrics.map((each) => bytesField(2, metric(each))),
    integer(3, seq),
    text(4, uuid),
    body ? bytesField(5, body) : none,
  ]);
}

const none = Buffer.alloc(0);

function metric(m: MetricText): Buffer {
  return Buffer.concat([
    text(1, m.name),
    integer(2, m.alias),
    integer(3, m.timestamp),
    integer(4, m.datatype),
    flag(5, m.isHistorical),
    flag(6, m.isTransient),
    flag(7, m.isNull),
    m.properties ? bytesField(9, properties(m.properties)) : none,
    integer(10, m.int),
    integer(11, m.long),
    fixed(12, m.float),
    fixed(13, m.double),
    flag(14, m.boolean),
    text(15, m.string),
    m.bytes ? bytesField(16, m.bytes) : none,
    m.dataset ? bytesField(17, m.dataset) : none,
    m.template ? bytesField(18, Buffer.concat(m.template.map((each) => bytesField(2, metric(each))))) : none,
  ]);
}

function properties(all: Readonly<Record<string, number | string>>): Buffer {
  const values = Object.values(all).map((value) =>
    typeof value === "string"
      ? Buffer.concat([integer(1, 12), text(8, value)])
      : Number.isInteger(value)
        ? Buffer.concat([integer(1, 3), integer(3, value)])
        : Buffer.concat([integer(1, 10), fixed(6, value, 8)]),
  );
  return Buffer.concat([
    ...Object.keys(all).map((name) => text(1, name)),
    ...values.map((value) => bytesField(2, value)),
  ]);
}

function integer(field: number, value: number | bigint | undefined): Buffer {
  return value === undefined ? none : Buffer.concat([varint(field * 8), varint(value)]);
}

function flag(field: number, value: boolean | undefined): Buffer {
  return value === undefined ? none : integer(field, value ? 1 : 0);
}

function text(field: number, value: string | undefined): Buffer {
  return value === undefined ? none : bytesField(field, Buffer.from(value));
}

/** A 32-bit float in field 12, otherwise 64 bits. */
function fixed(field: number, value: number | undefined, width = field === 12 ? 4 : 8): Buffer {
  if (value === undefined) return none;
  const bytes = Buffer.alloc(width);
  if (width === 4) bytes.writeFloatLE(value);
  else bytes.writeDoubleLE(value);
  return Buffer.concat([varint(field * 8 + (width === 4 ? 5 : 1)), bytes]);
}

function bytesField(field: number, value: Uint8Array): Buffer {
  return Buffer.concat([varint(field * 8 + 2), varint(value.length), value]);
}

function varint(value: number | bigint): Buffer {
  const bytes: number[] = [];
  let left = BigInt.asUintN(64, BigInt(value));
  for (; left >= 0x80n; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(left)]);
}
