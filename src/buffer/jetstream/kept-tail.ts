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

export type KeptTail = Awaited<ReturnType<typeof openKeptTail>>;

/** Loads the frames of earlier starts. Rejects if the folder cannot be read. */
export async function openKeptTail({ directory, keepMs, keepBytes, unreadable }: KeptTailOptions, clock: Clock) {
  /** By `frameKey`, in the order of publication. */
  const places = new Map<string, Place>();
  let bytes = 0;
  /** The file that is written, and its number, length and time of creation. Undefined: none is open. */
  let file: FileHandle | undefined;
  let number = 0;
  let length = 0;
  let since = 0;
  /** All files with a lower number are deleted. */
  let oldest = 0;

  const pathOf = (of: number) => join(directory, `tail-${of}.log`);

  function note(frame: Omit<KeptFrame, "isSettled">, place: Pick<Place, "file" | "offset" | "bytes">): void {
    const key = frameKey(frame.header);
    bytes += place.bytes - (places.get(key)?.bytes ?? 0);
    // A republished frame keeps its position in the order.
    places.set(key, { ...frame, ...place, since: clock.monotonic(), isSettled: false });
  }

  async function writable(): Promise<FileHandle> {
    if (length >= fileBytes || clock.monotonic() - since >= fileMs) await close();
    if (file) return file;
    const path = pathOf(++number);
    file = await open(path, "w", 0o600);
    length = 0;
    since = clock.monotonic();
    await syncName(path);
    return file;
  }

  async function close(): Promise<void> {
    const closing = file;
    file = undefined;
    length = 0;
    await closing?.close();
  }

  async function load(of: number): Promise<void> {
    if (number === 0) oldest = of;
    number = of;
    let content: Uint8Array;
    try {
      content = await readFile(pathOf(of));
    } catch (error) {
      // The stream has its frames, and the points that follow must not wait for them.
      unreadable(reasonOf(error));
      return;
    }
    for (let at = 0, record = recordAt(content, 0); record; at += record.bytes, record = recordAt(content, at)) {
      const { sequence, created, frame } = record;
      note({ sequence, created, header: decodeFrameHeader(frame) }, { file: of, offset: at, bytes: record.bytes });
    }
  }

  /** Reads a frame. Rejects as the disk does, or if the frame is damaged. */
  async function read({ header }: KeptFrame): Promise<Uint8Array> {
    const place = places.get(frameKey(header))!;
    await using source = await open(pathOf(place.file));
    const { buffer } = await source.read(Buffer.alloc(place.bytes), 0, place.bytes, place.offset);
    const record = recordAt(buffer, 0);
    if (!record) throw new Error(`${pathOf(place.file)} is damaged`);
    return record.frame;
  }

  await mkdir(directory, { recursive: true });
  const names = await readdir(directory);
  const numbers = names.flatMap((name) => /^tail-(\d+)\.log$/.exec(name)?.[1] ?? []).map(Number);
  for (const each of numbers.sort((a, b) => a - b)) await load(each);
  return {
    get bytes(): number {
      return bytes;
    },
    /** Oldest first. */
    get frames(): readonly KeptFrame[] {
      return [...places.values()];
    },
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
        const target = await writable();
        const { bytesWritten } = await target.write(record.written(), 0, record.length, length);
        if (bytesWritten < record.length) throw new Error(`${pathOf(number)}: the disk took a part of a record`);
        await target.datasync();
      } catch (error) {
        // Each try would leave a part of the record, and together they take the room that comes and goes on a full disk.
        const cut = length > 0 ? file?.truncate(length) : file && rm(pathOf(number));
        await cut?.catch(() => {});
        // After a failed sync, the kernel's copy of the file is unreliable: the next try writes to a new file.
        await close();
        throw error;
      }
      const place = { file: number, offset: length, bytes: record.length };
      note({ sequence, created, header: decodeFrameHeader(frame) }, place);
      length += record.length;
    },
    read,
    /**
     * Removes frames that are too old, beyond the size limit, or settled with all before them: values of a later frame
     * may replace those of one that is not settled. `unkept` stores removed frames that are not settled.
     */
    async trim(
      isSettled: (header: FrameHeader) => boolean,
      unkept: (frames: readonly UnkeptFrame[]) => Promise<void>,
    ): Promise<void> {
      const leaving: UnkeptFrame[] = [];
      const removed: (readonly [key: string, place: Place])[] = [];
      let left = bytes;
      let areSettled = true;
      for (const [key, place] of places) {
        const { header, sequence, created } = place;
        place.isSettled ||= isSettled(header);
        const isOver = clock.monotonic() - place.since > keepMs || left > keepBytes;
        if (!isOver) areSettled &&= place.isSettled;
        if (!isOver && !areSettled) continue;
        left -= place.bytes;
        removed.push([key, place]);
        if (place.isSettled) continue;
        try {
          leaving.push({ frame: decodeFrame(await read(place)), sequence, created });
        } catch {
          // A damaged frame cannot be published again, and how many points it has is not known.
        }
      }
      await unkept(leaving);
      for (const [key, place] of removed) {
        places.delete(key);
        bytes -= place.bytes;
      }
      const used = new Set(Array.from(places.values(), (place) => place.file));
      for (let each = oldest; each < number; each++) {
        if (used.has(each)) continue;
        try {
          await rm(pathOf(each), { force: true });
        } catch {
          // The next call tries again.
          continue;
        }
        if (each === oldest) oldest++;
      }
    },
    [Symbol.asyncDispose]: close,
  };
}

/** The record at `at`, and its length in `bytes`. Undefined: there is no intact record. */
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
