// `modbus-serial` as the client of functions 1 to 4: it encodes their requests. Functions 17 and 43/14 bypass it.
//
//   request   library -> ReadingPort -> Framing.begin -> stream
//   reply     stream -> Framing.receive -> answer
//
// The library gets no replies. It would accept those to other requests, and make a list of values that is not used: the
// data of a reply that matches are its bytes from the third one on.
import { EventEmitter } from "node:events";
import modbusSerial from "modbus-serial";
import {
  type Answer,
  checkLimits,
  encodeIdentityRequest,
  functionOf,
  isException,
  type UnitRequest,
} from "../config/pdu.ts";
import type { Table } from "../config/registers.ts";
import type { Framing } from "../framing/framing.ts";

/** The part of the library that is used. It gets no reply, so it never calls `done`. */
interface Library extends Record<(typeof functions)[Table], Read> {
  open(done: () => void): void;
}
type Read = (unit: number, start: number, count: number, done: () => void) => void;

const functions = { co: "writeFC1", di: "writeFC2", hr: "writeFC3", ir: "writeFC4" } as const satisfies Record<
  Table,
  string
>;
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

/** One request at a time over one connection. */
export function modbusClient(framing: Framing, write: (bytes: Uint8Array) => void) {
  let pending: UnitRequest | undefined;
  const library: Library = new modbusSerial.default(new ReadingPort((pdu) => send(pdu)));
  library.open(noReply);

  function send(pdu: Uint8Array): void {
    if (pending) write(framing.begin(pending, pdu));
  }

  /** `pdu` matches the request, see `Framing.receive`. Its second byte is a length, or the MEI type. */
  function decoded(pdu: Uint8Array | undefined): Answer | undefined {
    const request = pending;
    if (!pdu || !request) return undefined;
    pending = undefined;
    return isException(pdu, functionOf(request))
      ? { kind: "exception", code: pdu[1] ?? 0 }
      : // A copy, which `slice` of a `Buffer` is not.
        { kind: "data", bytes: new Uint8Array(pdu.subarray(2)) };
  }

  return {
    /** Throws `RangeError` if the protocol cannot express `request`. */
    begin(request: UnitRequest): void {
      pending = request;
      if ("identity" in request) {
        send(encodeIdentityRequest(request));
        return;
      }
      checkLimits(request);
      const { unit, table, start, count } = request;
      library[functions[table]](unit, start, count, noReply);
    },
    /** Returns the answer once it is complete. Throws like `Framing.receive`. */
    receive(chunk: Uint8Array): Answer | undefined {
      return decoded(framing.receive(chunk));
    },
    expire(): Answer | undefined {
      return decoded(framing.expire());
    },
    settle(): Answer | undefined {
      return decoded(framing.settle?.());
    },
  };
}
