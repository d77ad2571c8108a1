// `modbus-serial` as the client of functions 1 to 4. The library encodes requests and decodes replies. It sees only
// complete, matching replies. Functions 17 and 43/14 bypass it.
//
//   request   library -> ReadingPort -> Framing.begin -> stream
//   reply     stream -> Framing.receive -> ReadingPort -> library -> answered
//
// The library's own time-outs are not used: after one, it accepts the reply to another request.
import { EventEmitter } from "node:events";
import modbusSerial from "modbus-serial";
import { AgentError } from "../../../core/errors.ts";
import type { Answer, ReadRequest, UnitRequest } from "../config/pdu.ts";
import { checkLimits, encodeIdentityRequest, functionOf, isException } from "../config/pdu.ts";
import { crc16 } from "./bus-codec.ts";
import { copyBytes, type Framing } from "./framing.ts";

type Done = (
  error: (Error & { readonly modbusCode?: number }) | null,
  result?: { readonly buffer: Uint8Array },
) => void;

/** The part of the library that is used. `done` is called during `emit` of the port. */
interface Library {
  open(done: () => void): void;
  writeFC1(unit: number, start: number, count: number, done: Done): void;
  writeFC2(unit: number, start: number, count: number, done: Done): void;
  writeFC3(unit: number, start: number, count: number, done: Done): void;
  writeFC4(unit: number, start: number, count: number, done: Done): void;
}

/** A serial port for the library. It carries RTU frames in both directions, whatever the actual framing. */
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
    this.#send(frame.subarray(1, -2));
  }

  /** Passes a copy, as the library keeps it. */
  reply(unit: number, pdu: Uint8Array): void {
    const frame = Buffer.alloc(pdu.length + 3);
    frame[0] = unit;
    frame.set(pdu, 1);
    frame.writeUInt16LE(crc16(frame.subarray(0, -2)), frame.length - 2);
    this.emit("data", frame);
  }
}

/** One request at a time over one connection. */
export class ModbusClient {
  readonly #framing: Framing;
  readonly #write: (bytes: Uint8Array) => void;
  readonly #library: Library;
  readonly #port: ReadingPort;
  #request: UnitRequest | undefined;
  #answer: Answer | undefined;

  constructor(framing: Framing, write: (bytes: Uint8Array) => void) {
    this.#framing = framing;
    this.#write = write;
    this.#port = new ReadingPort((pdu) => this.#send(pdu));
    this.#library = new modbusSerial.default(this.#port);
    this.#library.open(() => {});
  }

  /** Throws `RangeError` if the protocol cannot express `request`. */
  ask(request: UnitRequest): void {
    this.#request = request;
    if ("identity" in request) this.#send(encodeIdentityRequest(request));
    else this.#readThroughLibrary(request);
  }

  /** Returns the answer once it is complete. Throws like `Framing.receive`. */
  receive(chunk: Uint8Array): Answer | undefined {
    return this.#decoded(this.#framing.receive(chunk));
  }

  expire(): Answer | undefined {
    return this.#decoded(this.#framing.expire());
  }

  settle(): Answer | undefined {
    return this.#decoded(this.#framing.settle?.());
  }

  #send(pdu: Uint8Array): void {
    if (this.#request) this.#write(this.#framing.begin(this.#request, pdu));
  }

  #readThroughLibrary(request: ReadRequest): void {
    checkLimits(request);
    const { unit, table, start, count } = request;
    this.#library[functions[table]](unit, start, count, (error, result) => {
      if (result) this.#answer = { kind: "data", bytes: copyBytes(result.buffer) };
      else if (error?.modbusCode !== undefined) this.#answer = { kind: "exception", code: error.modbusCode };
      else throw new AgentError("SOURCE_PROTOCOL", error?.message ?? "no result", { cause: error });
    });
  }

  #decoded(pdu: Uint8Array | undefined): Answer | undefined {
    const request = this.#request;
    if (!pdu || !request) return undefined;
    this.#request = undefined;
    if ("identity" in request)
      return isException(pdu, functionOf(request))
        ? { kind: "exception", code: pdu[1] ?? 0 }
        : { kind: "data", bytes: copyBytes(pdu.subarray(2)) };
    this.#answer = undefined;
    this.#port.reply(request.unit, pdu);
    return this.#answer;
  }
}

const functions = { co: "writeFC1", di: "writeFC2", hr: "writeFC3", ir: "writeFC4" } as const;
