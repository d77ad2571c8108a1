// The payload decoders. A new one is one file and one line here.
import type { EpochMicros } from "../../../core/point.ts";
import { cborDocument, messagePackDocument } from "./binary-documents.ts";
import {
  bareValue,
  type Compression,
  decompress,
  jsonDocument,
  jsonLines,
  lenientJsonDocument,
  numberDecoder,
  plainText,
} from "./payload.ts";
import { type CsvOptions, csvDecoder, lineProtocolRecords, senmlRecords } from "./records.ts";

/**
 * Converts a payload to the document to which `value` and `time` apply: objects, arrays, texts, numbers, bigints,
 * booleans, null and, for `binary`, the bytes. Throws `PayloadError` if the payload is invalid. Must not retain the
 * payload. `arrival`: arrival time of the message.
 */
export type Decoder = (payload: Buffer, arrival: EpochMicros) => unknown;

/** Options of a tag that affect decoding, in addition to the format. */
export interface DecoderOptions {
  readonly csv: Pick<CsvOptions, "separator" | "header">;
  readonly decimal: "." | ",";
  readonly compression: Compression;
  /** Whether JSON may contain `NaN` and `Infinity`. */
  readonly lenient: boolean;
}

const untouched: Decoder = (payload) => payload;

const decoders = {
  bare: () => bareValue,
  json: ({ lenient }) => (lenient ? lenientJsonDocument : jsonDocument),
  ndjson: () => jsonLines,
  number: ({ decimal }) => numberDecoder(decimal),
  text: () => plainText,
  csv: ({ csv, decimal }) => csvDecoder({ ...csv, decimal }),
  binary: () => (payload) => payload,
  cbor: () => cborDocument,
  msgpack: () => messagePackDocument,
  senml: () => senmlRecords,
  lineProtocol: () => lineProtocolRecords,
  // Decoding depends on earlier messages, so sparkplug/host.ts receives the bytes.
  sparkplugB: () => untouched,
} as const satisfies Record<string, (options: DecoderOptions) => Decoder>;

export type DecoderName = keyof typeof decoders;

/** Formats that a tag may name. `bare` is only a possible result of `auto`. */
export const payloadFormats = (Object.keys(decoders) as DecoderName[]).filter((name) => name !== "bare"); // its own keys

/** Caches decoders by their options, so that equal decoders can share one decoded document. */
export class DecoderTable {
  readonly #known = new Map<string, Decoder>();

  /** `maxPayload`: largest decompressed size in bytes. */
  get(name: DecoderName, { csv, decimal, compression, lenient }: DecoderOptions, maxPayload: number): Decoder {
    // All tags share one decoder, since the host must receive each message once.
    if (name === "sparkplugB") return untouched;
    const key = JSON.stringify([name, csv, decimal, compression, lenient]);
    const known = this.#known.get(key);
    if (known) return known;
    const decode = decoders[name]({ csv, decimal, compression, lenient });
    const made: Decoder =
      compression === "none"
        ? decode
        : (payload, arrival) => decode(decompress(payload, compression, maxPayload), arrival);
    this.#known.set(key, made);
    return made;
  }
}
