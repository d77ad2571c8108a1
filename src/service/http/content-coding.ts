// Compresses a response as its client accepts it (RFC 9110, 12.5.3), on a thread of the pool.
import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip, zstdCompress } from "node:zlib";

/** For smaller bodies, compression saves less than its headers cost. */
const leastBytes = 1_024;
/** Compression time matters as well: brotli's default quality of 11 takes seconds for megabytes. */
const brotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

/** In order of preference. */
const coders: Readonly<Record<string, (body: Uint8Array) => Promise<Uint8Array>>> = {
  zstd: promisify(zstdCompress),
  br: (body) => promisify(brotliCompress)(body, brotliOptions),
  gzip: (body) => promisify(gzip)(body, { level: 5 }),
};

interface CodedBody {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

/** Compresses `body` with the best coding that `request` accepts. Returns it with the response headers. */
export async function codedFor(request: IncomingMessage, body: Uint8Array): Promise<CodedBody> {
  if (body.length < leastBytes) return { body, headers: {} };
  const accepted = request.headers["accept-encoding"];
  const coding =
    accepted === undefined ? undefined : chosenCoding(Array.isArray(accepted) ? accepted.join() : accepted);
  const code = coding === undefined ? undefined : coders[coding];
  return coding === undefined || code === undefined
    ? { body, headers: {} }
    : { body: await code(body), headers: { "content-encoding": coding } };
}

/** The coding with the highest weight; undefined if none is accepted. `*` stands for all codings not named. */
function chosenCoding(accepted: string): string | undefined {
  const weights = new Map(
    accepted.split(",").map((part) => {
      const [name = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="));
      return [name === "x-gzip" ? "gzip" : name, weight === undefined ? 1 : Number(weight.slice(2)) || 0] as const;
    }),
  );
  // Identity has weight 0 unless named. On equal weight, compression is preferred.
  const plain = weights.get("identity") ?? 0;
  let chosen: string | undefined;
  let highest = 0;
  for (const coding of Object.keys(coders)) {
    const weight = weights.get(coding) ?? weights.get("*") ?? 0;
    if (weight > highest && weight >= plain) [chosen, highest] = [coding, weight];
  }
  return chosen;
}
