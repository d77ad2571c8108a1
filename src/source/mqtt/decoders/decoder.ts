// What a payload decoder is, and the table of them. A new one is one file and one line here.
import type { EpochMicros } from "../../../core/point.ts";
import { cborDocument, messagePackDocument } from "./binary-documents.ts";
import { jsonDocument, jsonLines, lenientJsonDocument } from "./json.ts";
import { type Compression, decompress } from "./payload.ts";
import { bareValue, numberDecoder, plainText } from "./plain-value.ts";
import { type CsvOptions, csvDecoder, lineProtocolRecords, senmlRecords } from "./records.ts";

/**
 * Turns a payload into a document that `value` and `time` find their way in: objects, arrays, texts, numbers, bigints,
 * booleans, null and, for `binary`, the bytes. Throws `PayloadError` when the payload is not what it should be. Never
 * keeps the payload. `arrival` is when the message arrived.
 */
export type Decoder = (payload: Buffer, arrival: EpochMicros) => unknown;

/** What a tag says about its payload, beside the format. */
export interface DecoderOptions {
  readonly csv: Pick<CsvOptions, "separator" | "header">;
  readonly decimal: "." | ",";
  readonly compression: Compression;
  /** Whether JSON may have `NaN` and `Infinity` in it. */
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
  // Needs to know what came before; see sparkplug/host.ts, which is given the bytes.
  sparkplugB: () => untouched,
} as const satisfies Record<string, (options: DecoderOptions) => Decoder>;

/** Names of the decoders. */
export type DecoderName = keyof typeof decoders;

/** Those that a tag may name: `bare` is what `auto` may come to. */
export const payloadFormats = (Object.keys(decoders) as DecoderName[]).filter((name) => name !== "bare"); // its own keys

/** Decoders by their options; the same options give the same decoder, so that it can be told when to decode once. */
export class DecoderTable {
  readonly #known = new Map<string, Decoder>();

  /** `maxPayload`: bytes that a compressed payload may have when it is inflated. */
  get(name: DecoderName, { csv, decimal, compression, lenient }: DecoderOptions, maxPayload: number): Decoder {
    // One for all tags, whatever else they say: the host must be given each message once.
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
