// Identifies units by their identification objects (function 43/14) and server id (function 17), and detects replies that
// a gateway or another unit sends for absent units.

import { consequenceOf, type IdentityRequest, type ReadRequest } from "../config/pdu.ts";
import type { Table } from "../config/registers.ts";
import { isAlive, type Result } from "../connection/result.ts";

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
  /** Adds all objects of a category. True: the device supports the function, but not this category. */
  const collect = async (category: "basic" | "regular") => {
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
  const isRefused = await collect("regular");
  if (isRefused) await collect("basic");
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

// Answers for absent units: some gateways send their own exception, and some devices answer any unit number. The
// asynchronous functions reject like `read`.

/** Unit numbers that buses hardly ever use. */
const unlikelyUnits = [247, 246, 245];
/** Exceptions from this code on are failures that do not depend on the address. */
const firstFailure = 4;
const tables: readonly Table[] = ["hr", "ir", "co", "di"];

export type ReadOnce = (request: ReadRequest) => Promise<Result>;

/** Answers to the first address of each table: `data`, `silence` or exception codes. */
export async function patternOf(unit: number, read: ReadOnce): Promise<string> {
  const answers: string[] = [];
  for (const table of tables) {
    const result = await read({ unit, table, start: 0, count: 1 });
    answers.push(result.kind === "exception" ? String(result.code) : result.kind);
  }
  return answers.join();
}

/** The common answers of units that are probably absent. Undefined if they are silent or differ. */
export async function patternOfAbsent(read: ReadOnce): Promise<string | undefined> {
  const patterns = new Set<string>();
  for (const unit of unlikelyUnits) {
    if (!isAlive(await read({ unit, table: "hr", start: 0, count: 1 }))) return undefined;
    patterns.add(await patternOf(unit, read));
  }
  const [pattern] = patterns;
  return patterns.size === 1 ? pattern : undefined;
}

/** Whether all answers are failures that do not depend on the address. */
export function isFailure(pattern: string): boolean {
  return pattern.split(",").every((answer) => Number(answer) >= firstFailure);
}

export function hasData(pattern: string): boolean {
  return pattern.includes("data");
}

/** Whether units that are probably absent return this value, too. If so, the device ignores the unit number. */
export async function answersForAny(table: Table, address: number, read: ReadOnce): Promise<boolean> {
  for (const unit of unlikelyUnits)
    if ((await read({ unit, table, start: address, count: 1 })).kind !== "data") return false;
  return true;
}
