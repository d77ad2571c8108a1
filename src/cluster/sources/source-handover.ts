// What the reader of a source leaves in the cluster for the next one: up to when it has recorded everything, and the
// files in which its driver keeps sessions and positions.
//
//   source.LINE                {node, upTo}                  written every third of `leaseTtl`, and at the end
//   files.LINE.session=2ejson  the file, compressed          written when it has changed
//
// Every write names the revision that it replaces, and the lease is checked before it is sent. A suspended process that
// resumes therefore changes nothing.
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { z } from "zod";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import { writeAtomically } from "../../lib/files/atomic-file.ts";
import { type KeyBucket, keyToken, parsed, tokenName } from "../connection/jetstream.ts";

const [compress, decompress] = [promisify(gzip), promisify(gunzip)];

const readerRecord = z.object({ node: z.string(), upTo: z.int().transform(epochMicros) });
/** The agent that read the source last, and up to when it has recorded everything. */
export type FormerReader = z.output<typeof readerRecord>;

/** Most bytes of a compressed file; a message of NATS may have 1 MiB. A larger file is not handed over. */
const mostBytes = 512 * 1_024;
/** Sizes at most `mostBytes` when compressed leave this much to be unpacked. */
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

export class SourceHandover {
  /** Undefined: no agent has read the source, or this one was the last. */
  readonly former: FormerReader | undefined;
  readonly #options: SourceHandoverOptions;
  readonly #files: Map<string, Written>;
  #revision: number | undefined;
  #upTo: EpochMicros | undefined;
  #saving: Promise<unknown> = Promise.resolve();

  private constructor(
    options: SourceHandoverOptions,
    { former, revision, files }: { former?: FormerReader; revision?: number; files: Map<string, Written> },
  ) {
    this.#options = options;
    this.former = former?.node === options.node ? undefined : former;
    this.#revision = revision;
    this.#files = files;
  }

  /**
   * Reads what the last reader left. If this was another agent, its files replace those in `folder`. Rejects with
   * server errors, or if the disk fails. The caller holds the lease of the source.
   */
  static async open(options: SourceHandoverOptions): Promise<SourceHandover> {
    const { state, source, folder, node } = options;
    const entry = await state.get(recordKey(source));
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
    if (former && former.node !== node) await replaceFiles(folder, files);
    return new SourceHandover(options, {
      files,
      ...(former && { former }),
      ...(entry && { revision: entry.revision }),
    });
  }

  /** Writes what has changed. `upTo`: up to when everything is recorded. Rejects with server errors. */
  save(upTo: EpochMicros): Promise<void> {
    const saving = this.#saving.then(() => this.#save(upTo));
    this.#saving = saving.catch(() => {});
    return saving;
  }

  async #save(upTo: EpochMicros): Promise<void> {
    const { state, source, node, folder, isHeld } = this.#options;
    const present = await filesIn(folder);
    const remove = async (name: string, { revision }: Written) => {
      if (!isHeld()) return;
      await state.delete(fileKey(source, name), revision);
      this.#files.delete(name);
    };
    for (const [name, written] of this.#files) if (!present.has(name)) await remove(name, written);
    for (const [name, bytes] of present) {
      const before = this.#files.get(name);
      if (before && Buffer.compare(before.bytes, bytes) === 0) continue;
      const value = await compress(bytes);
      if (value.length > mostBytes) {
        // An older version would not fit the other files.
        if (before) await remove(name, before);
        continue;
      }
      const revision = await this.#write(fileKey(source, name), value, before?.revision);
      if (revision !== undefined) this.#files.set(name, { bytes, revision });
    }
    if (upTo === this.#upTo) return;
    const value = Buffer.from(JSON.stringify({ node, upTo }));
    const revision = await this.#write(recordKey(source), value, this.#revision);
    if (revision === undefined) return;
    this.#revision = revision;
    this.#upTo = upTo;
  }

  /** Undefined: the lease is lost, so the entry belongs to another agent. */
  async #write(key: string, value: Uint8Array, revision: number | undefined): Promise<number | undefined> {
    const { state, isHeld } = this.#options;
    const put = async (last: number | undefined) =>
      isHeld() ? await (last === undefined ? state.create(key, value) : state.update(key, value, last)) : undefined;
    // While this agent holds the lease, an entry in the way is its own: the answer to an earlier write was lost.
    return (await put(revision)) ?? (await put((await state.get(key))?.revision));
  }
}

function recordKey(source: string): string {
  return `source.${keyToken(source)}`;
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
