// Metadata of signals in the bucket `state`, in parts: `signals.<node>.<number>`. A part never changes.
//
//   part 1, revision 40   a: °C, b: bar          order of a: 40, of b: 40
//   part 2, revision 57   a: K                   order of a: 57
//   part 3, revision 61   b: bar (40), a: K (57) written to replace parts 1 and 2; the orders stay
//
// The servers assign revisions, so the order of two descriptions does not depend on the clocks of the agents. If several
// agents describe one signal, the last change wins.
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { z } from "zod";
import { type InputId, isInputId } from "../../core/point.ts";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import { attempt } from "../../lib/flow/attempt.ts";
import { type KeyEntry, keyToken } from "../connection/jetstream.ts";

export interface DescribedSignal {
  readonly input: InputId;
  readonly signal: PartialSignalMetadata;
  /** Revision of the part that first had this description. Undefined: none has it yet. */
  readonly order: number | undefined;
}

export type PublishedSignal = DescribedSignal & { readonly order: number };

/** Maximum signals in a part, and its maximum size: far below the default limit of NATS, 1 MiB. */
const partSignals = 4_096;
const partBytes = 512 * 1_024;

const partContent = z.array(
  z.tuple([
    z.string(),
    // The uploader checks the attributes one by one when it saves them.
    z.custom<PartialSignalMetadata>((value) => typeof value === "object" && value !== null),
    z.int().nullable(),
  ]),
);

export const allSignals = "signals.";
export const partsOf = (node: string) => `${allSignals}${keyToken(node)}.`;

/** The values of as many parts as the signals need. */
export function* encodeParts(
  signals: readonly DescribedSignal[],
): Generator<{ readonly value: Uint8Array; readonly signals: readonly DescribedSignal[] }> {
  for (let at = 0; at < signals.length; at += partSignals) yield* encodePart(signals.slice(at, at + partSignals));
}

function* encodePart(signals: readonly DescribedSignal[]): ReturnType<typeof encodeParts> {
  const content = signals.map(({ input, signal, order }) => [input, signal, order ?? null]);
  const value = zstdCompressSync(JSON.stringify(content));
  if (value.length <= partBytes || signals.length === 1) return yield { value, signals };
  const half = signals.length >> 1;
  yield* encodePart(signals.slice(0, half));
  yield* encodePart(signals.slice(half));
}

/** Empty for a part of another version. */
export function decodePart({ value, revision }: KeyEntry): readonly PublishedSignal[] {
  const content = attempt(() => partContent.parse(JSON.parse(String(zstdDecompressSync(value))))) ?? [];
  return content.flatMap(([input, signal, order]) =>
    isInputId(input) ? [{ input, signal, order: order ?? revision }] : [],
  );
}
