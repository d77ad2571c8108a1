// Bounds the memory that one message of a server may take. The stack receives as much as the server says that it takes itself
// (the limits in its Acknowledge message, OPC 10000-6, 7.1.2.4), which may be 4 GiB: here the limits that the agent has sent in
// its Hello message hold, whatever the server answers.
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
      const limits = { maxMessageSize: largestMessageBytes, maxChunkCount: mostChunks };
      const transport = factory.create({ ...settings, ...limits });
      const limited = transport as unknown as Limited; // the interface leaves it out
      const setLimits = limited.setLimits.bind(transport);
      limited.setLimits = (given) =>
        setLimits({
          ...given,
          receiveBufferSize: Math.min(given.receiveBufferSize || largestChunkBytes, largestChunkBytes),
          // 0: without limit.
          maxMessageSize: Math.min(given.maxMessageSize || largestMessageBytes, largestMessageBytes),
          maxChunkCount: Math.min(given.maxChunkCount || mostChunks, mostChunks),
        });
      return transport;
    },
  };
}

interface Limits {
  readonly receiveBufferSize: number;
  readonly sendBufferSize: number;
  readonly maxMessageSize: number;
  readonly maxChunkCount: number;
}
interface Limited {
  setLimits: (given: Limits) => void;
}
