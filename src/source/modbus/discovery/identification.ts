// Reads a device's identification objects (function 43/14) and its server id (function 17).

import { consequenceOf, type IdentityRequest } from "../config/pdu.ts";
import type { Result } from "../connection/result.ts";

export interface Identity {
  /** `VendorName`, `server id`; `object 128` for objects that the specification does not name. */
  readonly name: string;
  /** One line without control characters. */
  readonly text: string;
}

/** Object names of the specification, by number. */
const names: readonly string[] = [
  "VendorName",
  "ProductCode",
  "MajorMinorRevision",
  "VendorUrl",
  "ProductName",
  "ModelName",
  "UserApplicationName",
];
/** Stops a device that reports more objects forever. */
const mostRequests = 16;
/** Shortest run of printable bytes that counts as text. */
const shortestText = 3;

/** Empty if the unit supports neither function. Rejects like `send`. */
export async function identify(
  unit: number,
  send: (request: IdentityRequest) => Promise<Result>,
): Promise<readonly Identity[]> {
  const found: Identity[] = [];
  /** Finds all objects of a category. True: the device supports the function, but not this category. */
  const refuses = async (category: "basic" | "regular") => {
    for (let from = 0, requests = 0; requests < mostRequests; requests++) {
      const result = await send({ unit, identity: "objects", category, from });
      if (result.kind === "exception" && found.length === 0) return consequenceOf(result.code) === "split";
      if (result.kind !== "data") break;
      // Header: category, conformity, more follows, next object, count. `mismatchOf` has checked that all objects are
      // complete.
      const [, , more = 0, next = 0, count = 0] = result.bytes;
      for (let i = 0, at = 5; i < count; i++) {
        const [number = 0, length = 0] = result.bytes.subarray(at);
        const text = printable(result.bytes.subarray(at + 2, at + 2 + length));
        if (text !== "") found.push({ name: names[number] ?? `object ${number}`, text });
        at += 2 + length;
      }
      if (more !== 0xff || next <= from) break;
      from = next;
    }
    return false;
  };
  if (await refuses("regular")) await refuses("basic");
  const serverId = await send({ unit, identity: "serverId" });
  if (serverId.kind === "data" && serverId.bytes.length > 0)
    found.push({ name: "server id", text: serverIdText(serverId.bytes) });
  return found;
}

function printable(bytes: Uint8Array): string {
  return new TextDecoder()
    .decode(bytes)
    .replace(/[\p{C}\s]+/gu, " ")
    .trim();
}

/** The format is the vendor's own. Shows text as such and other bytes in hexadecimal: `01 FF PM5340`. */
function serverIdText(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString("latin1");
  const parts = text.matchAll(new RegExp(`([ -~]{${shortestText},})|[^]`, "g"));
  return [...parts]
    .map(([part, run]) => run?.trim() ?? part.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase())
    .join(" ");
}
