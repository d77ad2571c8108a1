// Keeps the last published frames on disk until they are settled or too old, in case the servers lose them.
//
//   tail-<n>.log    a sequence of records: u32 length, u32 checksum; then float64 sequence in the stream, text with the
//                   stream's creation time, and the frame
//
// A record is synced before the local buffer settles its points. A file is deleted when none of its frames is kept.
import { type FileHandle, mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { reasonOf } from "../../core/errors.ts";
import type { Clock } from "../../core/runtime.ts";
import { syncName } from "../../lib/files/atomic-file.ts";
import { ByteReader, ByteWriter, crc32 } from "../disk/files/bytes.ts";
import type { UnkeptFrame } from "./settled-frames.ts";
import { decodeFrame, decodeFrameHeader, type FrameHeader, frameKey } from "./stream-frame.ts";

const fileBytes = 8 * 2 ** 20;
const fileMs = 60_000;
const headBytes = 8;

export interface KeptFrame {
  readonly header: FrameHeader;
  /** Sequence in the stream with this creation time. */
  readonly sequence: number;
  readonly created: string;
  /** Known as settled; it stays behind frames that are not. */
  readonly isSettled: boolean;
}

interface Place extends KeptFrame {
  isSettled: boolean;
  readonly file: number;
  readonly offset: number;
  readonly bytes: number;
  readonly since: number;
}

export interface KeptTailOptions {
  readonly directory: string;
  readonly keepMs: number;
  readonly keepBytes: number;
  /** Called with the reason if a file of an earlier start cannot be read. Its frames are not kept any more. */
  readonly unreadable: (reason: string) => void;
}

export class KeptTail implements AsyncDisposable {
  readonly #options: KeptTailOptions;
  readonly #clock: Clock;
  /** Keyed by node, epoch and number, in the order of publication. */
  readonly #places = new Map<string, Place>();
  #file: FileHandle | undefined;
  #number = 0;
  #length = 0;
  #since = 0;
  #bytes = 0;

  private constructor(options: KeptTailOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Loads the frames of earlier starts. Rejects if the folder cannot be read. */
  static async open(options: KeptTailOptions, clock: Clock): Promise<KeptTail> {
    const tail = new KeptTail(options, clock);
    await mkdir(options.directory, { recursive: true });
    const names = await readdir(options.directory);
    const numbers = names.flatMap((name) => /^tail-(\d+)\.log$/.exec(name)?.[1] ?? []).map(Number);
    for (const number of numbers.sort((a, b) => a - b)) await tail.#load(number);
    return tail;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Oldest first. */
  get frames(): readonly KeptFrame[] {
    return [...this.#places.values()];
  }

  /** Resolves once the frame is on disk. A frame kept before gets the new sequence and a new age. */
  async add(sequence: number, created: string, frame: Uint8Array): Promise<void> {
    const payload = new ByteWriter(frame.length + 64);
    payload.f64(sequence);
    payload.text(created);
    payload.raw(frame);
    const record = new ByteWriter(payload.length + headBytes);
    record.u32(payload.length);
    record.u32(crc32(payload.written()));
    record.raw(payload.written());
    try {
      const file = await this.#writable();
      const { bytesWritten } = await file.write(record.written(), 0, record.length, this.#length);
      if (bytesWritten < record.length)
        throw new Error(`${this.#path(this.#number)}: the disk took a part of a record`);
      await file.datasync();
    } catch (error) {
      // Each try would leave a part of the record, and together they take the room that comes and goes on a full disk.
      const cut = this.#length > 0 ? this.#file?.truncate(this.#length) : this.#file && rm(this.#path(this.#number));
      await cut?.catch(() => {});
      // After a failed sync, the kernel's copy of the file is unreliable: the next try writes to a new file.
      await this.#close();
      throw error;
    }
    this.#note({ sequence, created, header: decodeFrameHeader(frame) }, this.#number, this.#length, record.length);
    this.#length += record.length;
  }

  /** Reads a frame. Rejects as the disk does, or if the frame is damaged. */
  async read({ header }: KeptFrame): Promise<Uint8Array> {
    const place = this.#places.get(frameKey(header))!;
    await using file = await open(this.#path(place.file));
    const { buffer } = await file.read(Buffer.alloc(place.bytes), 0, place.bytes, place.offset);
    const record = recordAt(buffer, 0);
    if (!record) throw new Error(`${this.#path(place.file)} is damaged`);
    return record.frame;
  }

  /**
   * Removes frames that are too old, beyond the size limit, or settled with all before them: values of a later frame may
   * replace those of one that is not settled. `unkept` stores removed frames that are not settled.
   */
  async trim(
    isSettled: (header: FrameHeader) => boolean,
    unkept: (frames: readonly UnkeptFrame[]) => Promise<void>,
  ): Promise<void> {
    const { keepMs, keepBytes } = this.#options;
    const leaving: UnkeptFrame[] = [];
    const removed: [name: string, bytes: number][] = [];
    let left = this.#bytes;
    let areSettled = true;
    for (const [name, place] of this.#places) {
      const { header, sequence, created, since, bytes } = place;
      place.isSettled ||= isSettled(header);
      const isOver = this.#clock.monotonic() - since > keepMs || left > keepBytes;
      if (!isOver) areSettled &&= place.isSettled;
      if (!isOver && !areSettled) continue;
      left -= bytes;
      removed.push([name, bytes]);
      if (place.isSettled) continue;
      try {
        leaving.push({ frame: decodeFrame(await this.read(place)), sequence, created });
      } catch {
        // A damaged frame cannot be published again, and how many points it has is not known.
      }
    }
    await unkept(leaving);
    for (const [name, bytes] of removed) {
      this.#places.delete(name);
      this.#bytes -= bytes;
    }
    const used = new Set(Array.from(this.#places.values(), ({ file }) => file));
    for (let number = this.#oldest; number < this.#number; number++) {
      if (used.has(number)) continue;
      try {
        await rm(this.#path(number), { force: true });
      } catch {
        // The next call tries again.
        continue;
      }
      if (number === this.#oldest) this.#oldest++;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }

  #oldest = 0;

  #path(number: number): string {
    return join(this.#options.directory, `tail-${number}.log`);
  }

  #note(frame: Omit<KeptFrame, "isSettled">, file: number, offset: number, bytes: number): void {
    const name = frameKey(frame.header);
    this.#bytes += bytes - (this.#places.get(name)?.bytes ?? 0);
    // A republished frame keeps its position in the order.
    this.#places.set(name, { ...frame, file, offset, bytes, since: this.#clock.monotonic(), isSettled: false });
  }

  async #writable(): Promise<FileHandle> {
    if (this.#length >= fileBytes || this.#clock.monotonic() - this.#since >= fileMs) await this.#close();
    if (this.#file) return this.#file;
    const path = this.#path(++this.#number);
    this.#file = await open(path, "w", 0o600);
    this.#length = 0;
    this.#since = this.#clock.monotonic();
    await syncName(path);
    return this.#file;
  }

  async #close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    this.#length = 0;
    await file?.close();
  }

  async #load(number: number): Promise<void> {
    if (this.#number === 0) this.#oldest = number;
    this.#number = number;
    let bytes: Uint8Array;
    try {
      bytes = await readFile(this.#path(number));
    } catch (error) {
      // The stream has its frames, and the points that follow must not wait for them.
      this.#options.unreadable(reasonOf(error));
      return;
    }
    for (let at = 0, record = recordAt(bytes, 0); record; at += record.bytes, record = recordAt(bytes, at)) {
      const { sequence, created, frame } = record;
      this.#note({ sequence, created, header: decodeFrameHeader(frame) }, number, at, record.bytes);
    }
  }
}

/** The record at `at`, which has `bytes` in the file. Undefined: there is no intact one. */
function recordAt(bytes: Uint8Array, at: number) {
  if (bytes.length - at < headBytes) return undefined;
  const head = new ByteReader(bytes, at);
  const length = head.u32();
  const checksum = head.u32();
  const start = at + headBytes;
  if (length > bytes.length - start || crc32(bytes, start, start + length) !== checksum) return undefined;
  const payload = new ByteReader(bytes, start, start + length);
  const [sequence, created] = [payload.f64(), payload.text()];
  return { sequence, created, frame: payload.raw(payload.left), bytes: headBytes + length };
}
