// A framing with the encoder and decoder that `exchange.ts` uses: it takes requests and returns answers instead of PDUs.

import { type Answer, answerIn, type UnitRequest } from "../../src/source/modbus/config/pdu.ts";
import { requestEncoder } from "../../src/source/modbus/connection/request-encoder.ts";
import type { Framing } from "../../src/source/modbus/framing/framing.ts";

export type TypedFraming = Omit<Framing, "begin" | "receive" | "expire" | "settle"> & {
  /** The frame of `request`. */
  begin(request: UnitRequest): Uint8Array;
  receive(chunk: Uint8Array): Answer | undefined;
  expire(): Answer | undefined;
  settle(): Answer | undefined;
};

export function typedFraming(framing: Framing): TypedFraming {
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
