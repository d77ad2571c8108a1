// The OPC UA stack, loaded when the first connection is opened, and its own log turned to ours.
import type { OPCUACertificateManager } from "node-opcua-certificate-manager";
import type * as client from "node-opcua-client";
import type { ClientSessionImpl } from "node-opcua-client/dist/private/client_session_impl.js";
import type { IClientTransportFactory } from "node-opcua-transport";
import type { Logger } from "../../../core/runtime.ts";
import { DecodedChange, readPlainValue } from "../types/plain-value.ts";
import type { Binary } from "../types/structure.ts";
import type * as parts from "./stack-parts.ts";

export type Ua = typeof client;
export type CertificateStore = OPCUACertificateManager;
/** A session with the fields that are needed to take it up again on another connection. */
export type UaSession = ClientSessionImpl;

export type Stack = Readonly<Awaited<ReturnType<typeof loadStack>>>;

/** Loads the stack once; later calls only turn its log to `log`. The stack prints to the console otherwise. */
export async function loadStack(log: Logger) {
  loading ??= import("./stack-parts.ts").then((loaded) => {
    readPlainValues(loaded.ua);
    return loaded;
  });
  const { ua, OPCUACertificateManager, ClientSessionImpl, defaultClientTransportFactory, ...binary } = await loading;
  const quiet = (...words: unknown[]) => log.debug({ text: words.map(String).join(" ").slice(0, 500) }, "opcua stack");
  ua.setDebugLogger(quiet);
  ua.setWarningLogger(quiet);
  ua.setErrorLogger(quiet);
  return {
    ua,
    CertificateStore: OPCUACertificateManager,
    Session: ClientSessionImpl,
    transports: boundedTransports(defaultClientTransportFactory),
    binary: { Stream: binary.BinaryStream, typeByName: binary.findBuiltInType } satisfies Binary,
  };
}

let loading: Promise<typeof parts> | undefined;

/** From now on plain values in notifications are decoded as `PlainValue`; the stack decodes the others. */
function readPlainValues({ DataChangeNotification: { prototype }, MonitoredItemNotification }: Ua): void {
  prototype.decode = function (this: { monitoredItems: unknown }, stream) {
    const length = stream.readUInt32();
    const count = length === nullArray ? 0 : length;
    const changes: unknown[] = [];
    stream.checkArrayLength(count);
    while (changes.length < count) {
      const start = stream.length;
      const clientHandle = stream.readUInt32();
      const value = readPlainValue(stream);
      if (value) {
        changes.push(new DecodedChange(clientHandle, value));
        continue;
      }
      stream.length = start;
      const change = new MonitoredItemNotification(null);
      change.decode(stream);
      changes.push(change);
    }
    this.monitoredItems = changes;
    // Diagnostics follow, which are never asked for: the stack goes on behind them.
    stream.readUInt32();
  };
}

/** The length of an array that is missing. */
const nullArray = 0xffff_ffff;

/** A message is held as its chunks, in one piece and decoded: about four times this much at a time. */
export const largestMessageBytes = 32 * 1024 * 1024;
/** The stack's own. */
const largestChunkBytes = 640 * 1024;
/** Chunks of the smallest size that is allowed (8 KiB, OPC 10000-6, 6.7.2) have room for the largest message. */
const mostChunks = largestMessageBytes / 8_192;

/**
 * Transports as `factory` makes them, with the memory that one message of a server may take bounded by the limits that the agent
 * names in its Hello message. The limits in the server's Acknowledge message are those of requests (OPC 10000-6, 7.1.2.4): a small
 * device that takes requests of 8 KiB may send far larger answers. The stack applies them to what it receives all the same, and
 * they may be 4 GiB.
 */
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
