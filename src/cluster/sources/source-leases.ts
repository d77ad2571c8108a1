// Ensures with one lease per source that one agent at a time reads it, and passes the reader's state to the next reader.
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { z } from "zod";
import { reasonOf } from "../../core/errors.ts";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import { writeAtomically } from "../../lib/files/atomic-file.ts";
import { isAbort } from "../../lib/flow/abort.ts";
import { type KeyBucket, keyToken, parsed, tokenName } from "../connection/jetstream.ts";
import { acquireLease, type LeaseTerm } from "../leases/lease.ts";
import type { Membership } from "../members/membership.ts";
import { mayRead } from "../members/placement.ts";

export interface SourceLeasesOptions {
  readonly leases: KeyBucket;
  readonly node: string;
  readonly ttlMs: number;
  readonly view: Pick<Membership, "candidates" | "orders" | "isKnown">;
  /** Called when this agent is to read a source. May reject, for example with server errors: the lease is released. */
  readonly start: (source: string, term: LeaseTerm) => Promise<void>;
  /** Called after `start`. Resolves once the connection to the device is closed. Never rejects. */
  readonly stop: (source: string) => Promise<void>;
}

/** Key of the lease of a source, and of its record in `state`; without `source` the prefix of all of them. */
export function sourceLease(source = ""): string {
  return `source.${keyToken(source)}`;
}

/** Interval of checking whether another agent should read the source. */
const lookMs = 500;
/** Maximum time for a holder to close its connections after it has noticed the loss of its lease. */
const closingMs = 500;

/** Acquires and releases the lease of `source` until `signal` aborts. Then stops the source and resolves. */
export async function holdSource(
  source: string,
  { leases, node, ttlMs, view, start, stop }: SourceLeasesOptions,
  runtime: Pick<Runtime, "clock" | "log">,
  signal: AbortSignal,
): Promise<void> {
  const may = (holds: boolean) => view.isKnown && mayRead(source, { node, holds }, view.candidates, view.orders);
  while (!signal.aborted) {
    const lease = { bucket: leases, key: sourceLease(source), node, ttlMs, ifMissing: "wait" } as const;
    const term = await acquireLease(lease, runtime, signal, () => may(false)).catch((error: unknown) => {
      if (!isAbort(error, signal)) throw error;
    });
    if (!term) return;
    const over = AbortSignal.any([signal, term.signal]);
    const wait = (ms: number) => runtime.clock.sleep(ms, over).catch(() => {});
    await wait(closingMs);
    if (!over.aborted) {
      try {
        await start(source, term);
        while (!over.aborted && may(true)) await wait(lookMs);
      } catch (error) {
        runtime.log.warn({ source, reason: reasonOf(error) }, "cannot take over the source");
      } finally {
        await stop(source);
      }
    }
    // Release only after the stop, so that two agents are never connected to the device at once.
    await term.release();
  }
}

// What the reader of a source leaves in the bucket `state` for the next one: up to when it has recorded everything, and
// the files in which its driver keeps sessions and positions.
//
//   source.LINE                {node, upTo}                  written every third of `leaseTtl`, and at the end
//   files.LINE.session=2ejson  the file, compressed          written when it has changed
//
// Every write names the revision that it replaces, and the lease is checked before it is sent. A suspended process that
// resumes therefore changes nothing.

const [compress, decompress] = [promisify(gzip), promisify(gunzip)];

/** The agent that read the source last, and up to when it has recorded everything. */
const readerRecord = z.object({ node: z.string(), upTo: z.int().transform(epochMicros) });

/** Most bytes of a compressed file; a message of NATS may have 1 MiB. A larger file is not handed over. */
const mostBytes = 512 * 1_024;
/** Maximum bytes of a decompressed file. A larger one counts as damaged. */
const mostUnpacked = 64 * 1_024 * 1_024;

export interface SourceHandoverOptions {
  readonly state: KeyBucket;
  readonly source: string;
  readonly node: string;
  /** `DriverConfig.stateDir` */
  readonly folder: string;
  /** Whether this agent holds the lease of the source. */
  readonly isHeld: () => boolean;
}

interface Written {
  readonly bytes: Uint8Array;
  readonly revision: number;
}

export type SourceHandover = Awaited<ReturnType<typeof openHandover>>;

/**
 * Reads what the last reader left. If this was another agent, its files replace those in `folder`. Rejects with
 * server errors, or if the disk fails. The caller holds the lease of the source.
 */
export async function openHandover({ state, source, node, folder, isHeld }: SourceHandoverOptions) {
  const entry = await state.get(sourceLease(source));
  const former = parsed(readerRecord, entry?.value);
  const files = new Map<string, Written>();
  for (const { key, value, revision } of await state.list(`${filesKey(source)}.`)) {
    const name = tokenName(key.slice(key.lastIndexOf(".") + 1));
    if (!isStateFile(name)) continue;
    // The driver does without a damaged file, as after the loss of its disk. The next save replaces it.
    const bytes = await decompress(value, { maxOutputLength: mostUnpacked }).catch(() => undefined);
    if (bytes) files.set(name, { bytes, revision });
  }
  // After its own term, this agent's files are the newest ones.
  const isFromOther = former !== undefined && former.node !== node;
  if (isFromOther) await replaceFiles(folder, files);
  let recordRevision = entry?.revision;
  let recordedUpTo: EpochMicros | undefined;
  let saving: Promise<unknown> = Promise.resolve();

  async function saveNow(upTo: EpochMicros): Promise<void> {
    const present = await filesIn(folder);
    for (const [name, written] of files) if (!present.has(name)) await remove(name, written);
    for (const [name, bytes] of present) {
      const before = files.get(name);
      if (before && Buffer.compare(before.bytes, bytes) === 0) continue;
      const value = await compress(bytes);
      if (value.length > mostBytes) {
        // An older version would not fit the other files.
        if (before) await remove(name, before);
        continue;
      }
      const revision = await write(fileKey(source, name), value, before?.revision);
      if (revision !== undefined) files.set(name, { bytes, revision });
    }
    if (upTo === recordedUpTo) return;
    const value = Buffer.from(JSON.stringify({ node, upTo }));
    const revision = await write(sourceLease(source), value, recordRevision);
    if (revision === undefined) return;
    recordRevision = revision;
    recordedUpTo = upTo;
  }

  async function remove(name: string, { revision }: Written): Promise<void> {
    if (!isHeld()) return;
    await state.delete(fileKey(source, name), revision);
    files.delete(name);
  }

  /** Undefined: the lease is lost, so the entry belongs to another agent. */
  async function write(key: string, value: Uint8Array, revision: number | undefined): Promise<number | undefined> {
    const put = async (last: number | undefined) =>
      isHeld() ? await (last === undefined ? state.create(key, value) : state.update(key, value, last)) : undefined;
    // While this agent holds the lease, an entry in the way is its own: the answer to an earlier write was lost.
    return (await put(revision)) ?? (await put((await state.get(key))?.revision));
  }

  return {
    /** Undefined: no agent has read the source, or this one was the last. */
    former: isFromOther ? former : undefined,
    /** Writes what has changed. `upTo`: up to when everything is recorded. Rejects with server errors. */
    save(upTo: EpochMicros): Promise<void> {
      const saved = saving.then(() => saveNow(upTo));
      saving = saved.catch(() => {});
      return saved;
    },
  };
}

function filesKey(source: string): string {
  return `files.${keyToken(source)}`;
}

function fileKey(source: string, name: string): string {
  return `${filesKey(source)}.${keyToken(name)}`;
}

/** Certificates and keys stay on their machine, and no path leads out of the folder. */
function isStateFile(name: string): boolean {
  return /^[\w-][\w.-]*(\/[\w-][\w.-]*){0,2}\.(json|times)$/.test(name);
}

/** State files by their paths below `folder`, with slashes on every platform, since another node reads them. */
async function filesIn(folder: string): Promise<Map<string, Uint8Array>> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const files = new Map<string, Uint8Array>();
  for (const name of names.map((found) => found.replaceAll(sep, "/")).filter(isStateFile)) {
    const bytes = await readFile(join(folder, name)).catch(() => undefined);
    if (bytes) files.set(name, bytes);
  }
  return files;
}

async function replaceFiles(folder: string, files: ReadonlyMap<string, Written>): Promise<void> {
  for (const name of (await filesIn(folder)).keys()) await rm(join(folder, name), { force: true });
  for (const [name, { bytes }] of files) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeAtomically(path, bytes);
  }
}
