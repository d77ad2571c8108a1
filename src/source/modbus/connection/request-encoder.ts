// Encodes requests: those of functions 1 to 4 with `modbus-serial`, the others here.
//
// The library gets no replies: it would accept replies to other requests, and build a list of values that nothing uses.
import { EventEmitter } from "node:events";
import modbusSerial from "modbus-serial";
import { checkLimits, encodeIdentityRequest, functions, type UnitRequest } from "../config/pdu.ts";
import type { Table } from "../config/registers.ts";

/** The part of the library that is used. It gets no reply, so it never calls `done`. */
interface Library extends Record<`writeFC${(typeof functions)[Table]}`, Read> {
  open(done: () => void): void;
}
type Read = (unit: number, start: number, count: number, done: () => void) => void;

const noReply = () => {};

/** A serial port for the library, which writes RTU frames to it, whatever the actual framing. */
export class ReadingPort extends EventEmitter {
  readonly isOpen = true;
  readonly #send: (pdu: Uint8Array) => void;

  constructor(send: (pdu: Uint8Array) => void) {
    super();
    this.#send = send;
  }

  open(done: () => void): void {
    done();
  }

  /** Takes an RTU frame. Rejects the library's writing functions. */
  write(frame: Uint8Array): void {
    const [, code = 0] = frame;
    if (code < 1 || code > 4) throw new RangeError(`function ${code} does not read`);
    const pdu = new Uint8Array(frame.length - 3);
    // A view would give the frame memory of its own.
    for (let i = 0; i < pdu.length; i++) pdu[i] = frame[i + 1]!;
    this.#send(pdu);
  }
}

/** Encodes the PDUs of the requests of one connection. Throws `RangeError` if the protocol cannot express a request. */
export function requestEncoder(): (request: UnitRequest) => Uint8Array {
  let encoded: Uint8Array = new Uint8Array();
  const library: Library = new modbusSerial.default(new ReadingPort((pdu) => (encoded = pdu)));
  library.open(noReply);
  return (request) => {
    if ("identity" in request) return encodeIdentityRequest(request);
    checkLimits(request);
    const { unit, table, start, count } = request;
    library[`writeFC${functions[table]}`](unit, start, count, noReply);
    return encoded;
  };
}
