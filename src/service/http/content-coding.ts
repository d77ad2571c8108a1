// Compresses an answer as its client accepts it (RFC 9110, 12.5.3). On a thread of the pool, not on that of the sockets.
import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip, zstdCompress } from "node:zlib";

/** Below this the headers weigh more than what is saved. */
const leastBytes = 1_024;
/** The time to compress counts as well as that to send: quality 11, brotli's default, takes seconds for megabytes. */
const brotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

/** The best first. */
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

/** The coding of the highest weight, undefined where none is accepted. `*` is every coding that is not named. */
function chosenCoding(accepted: string): string | undefined {
  const weights = new Map(
    accepted.split(",").map((part) => {
      const [name = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="));
      return [name === "x-gzip" ? "gzip" : name, weight === undefined ? 1 : Number(weight.slice(2)) || 0] as const;
    }),
  );
  // Where it is named only, and of equal weight what is shorter.
  const plain = weights.get("identity") ?? 0;
  let chosen: string | undefined;
  let highest = 0;
  for (const coding of Object.keys(coders)) {
    const weight = weights.get(coding) ?? weights.get("*") ?? 0;
    if (weight > highest && weight >= plain) [chosen, highest] = [coding, weight];
  }
  return chosen;
}
