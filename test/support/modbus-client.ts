// A framing behind the client of `exchange.ts`: requests in, frames out; bytes in, answers out.

import type { Answer, UnitRequest } from "../../src/source/modbus/config/pdu.ts";
import { modbusClient } from "../../src/source/modbus/connection/client.ts";
import type { Framing } from "../../src/source/modbus/framing/framing.ts";

export type FramingWithClient = Omit<Framing, "begin" | "receive" | "expire" | "settle"> & {
  /** The frame of `request`. */
  begin(request: UnitRequest): Uint8Array;
  receive(chunk: Uint8Array): Answer | undefined;
  expire(): Answer | undefined;
  settle(): Answer | undefined;
};

export function withClient(framing: Framing): FramingWithClient {
  let sent = new Uint8Array();
  const client = modbusClient(framing, (bytes) => {
    sent = new Uint8Array(bytes);
  });
  return {
    resync: (request) => framing.resync(request),
    begin(request) {
      client.begin(request);
      return sent;
    },
    receive: (chunk) => client.receive(chunk),
    get holding() {
      return framing.holding;
    },
    expire: () => client.expire(),
    settle: () => client.settle(),
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
