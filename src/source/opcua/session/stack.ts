// The OPC UA stack, loaded when the first connection is opened, and its own log turned to ours.

import type { OPCUACertificateManager } from "node-opcua-certificate-manager";
import type * as client from "node-opcua-client";
import type { ClientSessionImpl } from "node-opcua-client/dist/private/client_session_impl.js";
import type { IClientTransportFactory } from "node-opcua-transport";
import type { Logger } from "../../../core/runtime.ts";
import { boundedTransports } from "./transport.ts";

export type Ua = typeof client;
export type CertificateStore = OPCUACertificateManager;
/** A session with the fields that are needed to take it up again on another connection. */
export type UaSession = ClientSessionImpl;

export interface Stack {
  readonly ua: Ua;
  readonly CertificateStore: typeof OPCUACertificateManager;
  readonly Session: typeof ClientSessionImpl;
  readonly transports: IClientTransportFactory;
}

/** Loads the stack once; later calls only turn its log to `log`. The stack prints to the console otherwise. */
export async function loadStack(log: Logger): Promise<Stack> {
  const { ua, OPCUACertificateManager, ClientSessionImpl, defaultClientTransportFactory } = await import(
    "./stack-parts.ts"
  );
  const quiet = (...words: unknown[]) => log.debug({ text: words.map(String).join(" ").slice(0, 500) }, "opcua stack");
  ua.setDebugLogger(quiet);
  ua.setWarningLogger(quiet);
  ua.setErrorLogger(quiet);
  const transports = boundedTransports(defaultClientTransportFactory);
  return { ua, CertificateStore: OPCUACertificateManager, Session: ClientSessionImpl, transports };
}
