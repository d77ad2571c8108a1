// A framing behind the encoder and decoder of `exchange.ts`: requests in, frames out; bytes in, answers out.

import { type Answer, answerIn, type UnitRequest } from "../../src/source/modbus/config/pdu.ts";
import { requestEncoder } from "../../src/source/modbus/connection/request-encoder.ts";
import type { Framing } from "../../src/source/modbus/framing/framing.ts";

export type FramingWithClient = Omit<Framing, "begin" | "receive" | "expire" | "settle"> & {
  /** The frame of `request`. */
  begin(request: UnitRequest): Uint8Array;
  receive(chunk: Uint8Array): Answer | undefined;
  expire(): Answer | undefined;
  settle(): Answer | undefined;
};

export function withClient(framing: Framing): FramingWithClient {
  const encode = requestEncoder();
  let sent: UnitRequest | undefined;
  const decoded = (pdu: Uint8Array | undefined) => pdu && sent && answerIn(pdu, sent);
  return {
    resync: (request) => framing.resync(request),
    begin(request) {
      sent = request;
      return new Uint8Array(framing.begin(request, encode(request)));
    },
    receive: (chunk) => decoded(framing.receive(chunk)),
    get holding() {
      return framing.holding;
    },
    expire: () => decoded(framing.expire()),
    settle: () => decoded(framing.settle?.()),
    abandon: () => framing.abandon(),
    get discarded() {
      return framing.discarded;
    },
    get late() {
      return framing.late;
    },
    get mismatch() {
      return framing.mismatch;
    },
  };
}
