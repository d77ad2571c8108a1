// Writes a planned frame as bytes into one buffer that is used again for every request.
import { Columns } from "./columns.ts";
import type { Envelope, FramePlan } from "./frame-plan.ts";
import { textLength, writeNumber } from "./number-text.ts";
import { TimeWriter } from "./time-text.ts";

/** Cells after which the writer lets others run: about 4 ms. */
const cellsPerSlice = 200_000;
/** Frames of this many bytes are written where larger ones were: what those have touched is not worth giving back. */
const smallFrame = 2 ** 20;
/** So many times smaller than the largest one before has a frame to be for its memory to be given back. */
const muchSmaller = 8;
const nullText = Buffer.from("null,".repeat(4_096), "latin1");

export class FrameWriter {
  readonly #envelope: Envelope;
  readonly #column = new Columns();
  readonly #times = new TimeWriter();
  #bytes: Buffer;
  /** Bytes of `#bytes` that were ever written. */
  #touched = 0;

  /** Memory is not touched before it is used, so `maxBytes` costs nothing until a frame is that large. */
  constructor(envelope: Envelope, maxBytes: number) {
    this.#envelope = envelope;
    this.#bytes = Buffer.allocUnsafeSlow(maxBytes);
  }

  /** Yields after each slice of work; returns a view of the buffer, good until the next call. */
  *write(plan: FramePlan, id: number): Generator<void, Uint8Array> {
    this.#fit(plan.bytes);
    const bytes = this.#bytes;
    let at = bytes.write(this.#envelope.head(id), 0, "latin1");
    let work = 0;
    for (let i = 0; i < plan.times.length; i++) {
      bytes[at++] = quote;
      at = this.#times.write(bytes, at, plan.times[i]!);
      bytes[at++] = quote;
      bytes[at++] = comma;
      if (++work % cellsPerSlice === 0) yield;
    }
    at += bytes.write(this.#envelope.between, at - 1, "latin1") - 1;
    for (const { source, count } of plan.columns) {
      bytes[at++] = quote;
      at += bytes.write(source.input, at, "latin1");
      bytes[at++] = quote;
      bytes[at++] = colon;
      bytes[at++] = open;
      // As many as there are rows, none twice: then they are the rows, and nobody needs to look at their times.
      if (count === plan.times.length && source.readValues?.(count, this.#column))
        at = this.#writeFullColumn(bytes, at);
      else {
        source.read(count, this.#column);
        at = this.#writeCells(bytes, at, plan.times);
      }
      bytes[at - 1] = close;
      bytes[at++] = comma;
      work += plan.times.length;
      if (work >= cellsPerSlice) {
        work = 0;
        yield;
      }
    }
    at += bytes.write(this.#envelope.tail, at - 1, "latin1") - 1;
    if (at !== plan.bytes) throw new RangeError(`frame of ${at} bytes was planned with ${plan.bytes}`);
    return bytes.subarray(0, at);
  }

  /** After a burst its memory goes to the garbage collector; not sooner, for a socket may still hold on to it. */
  #fit(bytes: number): void {
    const shrinks = this.#touched > Math.max(smallFrame, bytes * muchSmaller);
    if (shrinks || bytes > this.#bytes.length) {
      this.#bytes = Buffer.allocUnsafeSlow(Math.max(bytes, this.#bytes.length));
      this.#touched = 0;
    }
    this.#touched = Math.max(this.#touched, bytes);
  }

  #writeFullColumn(bytes: Buffer, start: number): number {
    const { values, forms, count } = this.#column;
    let at = start;
    for (let i = 0; i < count; i++) {
      const form = forms[i]!;
      writeNumber(bytes, at, values[i]!, form);
      at += textLength(form);
      bytes[at++] = comma;
    }
    return at;
  }

  /** One text and comma for each row. */
  #writeCells(bytes: Buffer, start: number, rows: Float64Array): number {
    const { times, values, forms, count } = this.#column;
    let at = start;
    let row = 0;
    for (let i = 0; i < count; i++) {
      const time = times[i]!;
      if (rows[row] !== time) {
        const from = row;
        while (rows[row]! < time) row++;
        at = writeNulls(bytes, at, row - from);
      }
      const form = forms[i]!;
      writeNumber(bytes, at, values[i]!, form);
      at += textLength(form);
      bytes[at++] = comma;
      row++;
    }
    return writeNulls(bytes, at, rows.length - row);
  }
}

function writeNulls(bytes: Buffer, start: number, count: number): number {
  let at = start;
  let left = count * 5;
  if (left <= 40) {
    for (let i = 0; i < left; i++) bytes[at++] = nullText[i]!;
    return at;
  }
  while (left > 0) {
    const length = Math.min(left, nullText.length);
    nullText.copy(bytes, at, 0, length);
    at += length;
    left -= length;
  }
  return at;
}

const quote = 34;
const comma = 44;
const colon = 58;
const open = 91;
const close = 93;
