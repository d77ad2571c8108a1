// Loads the OPC UA stack when the first connection is opened, and redirects its log to the agent's.
import type { OPCUACertificateManager } from "node-opcua-certificate-manager";
import type * as client from "node-opcua-client";
import type { ClientSessionImpl } from "node-opcua-client/dist/private/client_session_impl.js";
import type { IClientTransportFactory } from "node-opcua-transport";
import { reasonOf } from "../../../core/errors.ts";
import type { Logger } from "../../../core/runtime.ts";
import { DecodedChange, readPlainValue } from "../types/plain-value.ts";
import { skipVariant } from "../types/skip-variant.ts";
import type { Binary } from "../types/structure.ts";
import { Undecoded } from "../types/value.ts";
import { failSingleRequests } from "./failed-answers.ts";
import type * as parts from "./stack-parts.ts";

export type Ua = typeof client;
export type CertificateStore = OPCUACertificateManager;
/** A session with the fields that are needed to resume it on another connection. */
export type UaSession = ClientSessionImpl;

export type Stack = Readonly<Awaited<ReturnType<typeof loadStack>>>;

/** Loads the stack once; later calls only redirect its log to `log`. By default the stack prints to the console. */
export async function loadStack(log: Logger) {
  loading ??= import("./stack-parts.ts").then((loaded) => {
    skipUndecodableValues(loaded.ua);
    readPlainValues(loaded.ua);
    failSingleRequests(loaded.ua, loaded.BinaryStream);
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

/**
 * From now on a value that the stack cannot decode is `Undecoded`, and the values behind it are decoded. Otherwise the
 * stack would ignore an answer with such a value, or leave out all values of a notification.
 */
function skipUndecodableValues({ Variant: { prototype }, DataType, VariantArrayType }: Ua): void {
  const decode: unknown = Reflect.get(prototype, "decode");
  if (typeof decode !== "function") throw new TypeError("a Variant can be decoded");
  prototype.decode = function (stream) {
    const start = stream.length;
    try {
      Reflect.apply(decode, this, [stream]);
    } catch (error) {
      stream.length = start;
      skipVariant(stream);
      const value = new Undecoded(`the value cannot be decoded: ${reasonOf(error)}`);
      Object.assign(this, { dataType: DataType.Variant, arrayType: VariantArrayType.Scalar, value });
    }
  };
}

/** Decodes plain values in notifications as `PlainValue` from now on. The stack decodes the others. */
function readPlainValues({ DataChangeNotification: { prototype }, MonitoredItemNotification }: Ua): void {
  prototype.decode = function (this: { monitoredItems: unknown; undecoded?: string }, stream) {
    const changes: unknown[] = [];
    this.monitoredItems = changes;
    try {
      const length = stream.readUInt32();
      const count = length === nullArray ? 0 : length;
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
    } catch (error) {
      // The stack ignores an error.
      this.undecoded = reasonOf(error);
      return;
    }
    // Skip the diagnostics, which the agent never requests. The stack continues after them.
    stream.readUInt32();
  };
}

/** The encoded length of a null array. */
const nullArray = 0xffff_ffff;

/** The stack holds a message as chunks, in one piece and decoded: about four times this size in memory. */
export const largestMessageBytes = 32 * 1024 * 1024;
/** The stack's default. */
const largestChunkBytes = 640 * 1024;
/** The largest message fits in chunks of the smallest allowed size (8 KiB, OPC 10000-6, 6.7.2). */
const mostChunks = largestMessageBytes / 8_192;

/**
 * Wraps `factory` so that a received message cannot exceed the limits that the agent sends in its Hello message.
 * The limits in the server's Acknowledge message apply to requests (OPC 10000-6, 7.1.2.4). The stack also applies them
 * to answers. They may be too small for the answers of a small device, or as large as 4 GiB.
 */
function boundedTransports(factory: IClientTransportFactory): IClientTransportFactory {
  return {
    create(settings) {
      const received = { maxMessageSize: largestMessageBytes, maxChunkCount: mostChunks };
      const buffers = { receiveBufferSize: largestChunkBytes, sendBufferSize: largestChunkBytes };
      const transport = factory.create({ ...settings, ...received, ...buffers });
      const limited = transport as unknown as Limited; // missing in the interface
      const setLimits = limited.setLimits.bind(transport);
      limited.setLimits = (acknowledged) => {
        // The stack sends chunks of this size: at most what the server receives.
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
