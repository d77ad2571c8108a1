// Bounds the memory that one message of a server may take, by the limits that the agent names in its Hello message. The limits in
// the server's Acknowledge message are those of requests (OPC 10000-6, 7.1.2.4): a small device that takes requests of 8 KiB may
// send far larger answers. The stack applies them to what it receives all the same, and they may be 4 GiB.
import type { IClientTransportFactory } from "node-opcua-transport";

/** A message is held as its chunks, in one piece and decoded: about four times this much at a time. */
export const largestMessageBytes = 32 * 1024 * 1024;
/** The stack's own. */
const largestChunkBytes = 640 * 1024;
/** Chunks of the smallest size that is allowed (8 KiB, OPC 10000-6, 6.7.2) have room for the largest message. */
const mostChunks = largestMessageBytes / 8_192;

/** Transports as `factory` makes them, within these limits. */
export function boundedTransports(factory: IClientTransportFactory): IClientTransportFactory {
  return {
    create(settings) {
      const received = { maxMessageSize: largestMessageBytes, maxChunkCount: mostChunks };
      const buffers = { receiveBufferSize: largestChunkBytes, sendBufferSize: largestChunkBytes };
      const transport = factory.create({ ...settings, ...received, ...buffers });
      const limited = transport as unknown as Limited; // the interface leaves it out
      const setLimits = limited.setLimits.bind(transport);
      limited.setLimits = (acknowledged) => {
        // What the stack sends in one chunk: no more than the server receives.
        acknowledged.sendBufferSize = Math.min(acknowledged.receiveBufferSize || largestChunkBytes, largestChunkBytes);
        setLimits({ ...received, ...buffers, sendBufferSize: acknowledged.sendBufferSize });
      };
      return transport;
    },
  };
}

interface Limits {
  readonly receiveBufferSize: number;
  sendBufferSize: number;
  readonly maxMessageSize: number;
  readonly maxChunkCount: number;
}
interface Limited {
  setLimits: (given: Limits) => void;
}
