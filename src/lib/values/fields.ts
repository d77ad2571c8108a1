// Schema fields that several parts share: durations, byte sizes, secrets, listen addresses.
import { z } from "zod";
import { Secret } from "../../core/secret.ts";
import { formatDuration, parseDuration } from "../time/duration.ts";
import { formatByteSize, parseByteSize } from "./byte-size.ts";

interface Bounds {
  /** In the field's base unit, milliseconds or bytes; inclusive. */
  readonly min?: number;
  readonly max?: number;
}

/** `5s`, `250ms`, `1h30m` → milliseconds. */
export function duration(bounds: Bounds = {}) {
  return measured({
    ...bounds,
    parse: parseDuration,
    format: formatDuration,
    what: "a length of time with its unit, as in 250ms, 5s, 10m, 1h30m or 7d",
    measure: "duration",
    pattern: String.raw`^(\d+(\.\d+)?(ms|s|m|h|d|w))+$|^0$`,
  });
}

/** `64KiB`, `2GiB` → bytes. */
export function byteSize(bounds: Bounds = {}) {
  return measured({
    ...bounds,
    parse: parseByteSize,
    format: formatByteSize,
    what: "an amount of bytes with its unit, as in 64KiB, 8MiB or 2GiB",
    measure: "bytes",
    pattern: String.raw`^\d+(\.\d+)?\s*([kKMGT]B|[KMGT]iB|B)$|^0$`,
  });
}

interface Measured extends Bounds {
  readonly parse: (text: string) => number | undefined;
  readonly format: (value: number) => string;
  readonly what: string;
  /** Kind of quantity and its format as a regular expression, for the JSON Schema and the reference. */
  readonly measure: "duration" | "bytes";
  readonly pattern: string;
}

function measured({ min, max, parse, format, what, measure, pattern }: Measured) {
  const field = z.string({ error: `must be ${what}` }).transform((text, context) => {
    const value = parse(text);
    if (value === undefined) return unfit(context, `must be ${what}`, text);
    if (min !== undefined && value < min) return unfit(context, `must be at least ${format(min)}`, text);
    if (max !== undefined && value > max) return unfit(context, `must be at most ${format(max)}`, text);
    return value;
  });
  return field.meta({ measure, pattern });
}

/** A text that `parse` converts. On failure `parse` returns what the text must be, to be read after "must". */
export function parsedText<T extends object>(parse: (text: string) => T | string) {
  return z.string().transform((text, context): T => {
    const parsed = parse(text);
    return typeof parsed === "string" ? unfit(context, `must ${parsed}`, text) : parsed;
  });
}

/** Rejects the input of a transformation with `message`. */
export function unfit(context: z.RefinementCtx, message: string, input: unknown): typeof z.NEVER {
  context.addIssue({ code: "custom", message, input });
  return z.NEVER;
}

/** A password, token or key: never printed. May be empty. */
export function secret() {
  return z
    .string({ error: "must be a text; better a reference such as ${file:/run/secrets/name} than the secret itself" })
    .transform((text) => new Secret(text))
    .meta({ secret: true });
}

/** `127.0.0.1:8421`, `[::1]:8421`, `:8421` → host and port. Port 0 takes any free one. */
export function listenAddress() {
  return z.string().transform((text, context) => {
    const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(text);
    const port = Number(match?.[3]);
    if (!match || port > 65_535) return unfit(context, "must be host:port, as in 127.0.0.1:8421", text);
    return { host: match[1] ?? (match[2] || "0.0.0.0"), port } satisfies ListenAddress;
  });
}

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}
