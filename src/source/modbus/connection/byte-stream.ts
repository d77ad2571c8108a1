// A way to send bytes and be told of bytes that come: a socket or a serial port, whatever it is made of.
import type { AgentError } from "../../../core/errors.ts";

export interface ByteStreamListener {
  /** The chunk is the listener's only during the call. */
  data(chunk: Uint8Array): void;
  /** Nothing comes any more. Called once, also when it had happened before `listen`; not after disposal. */
  closed(error: AgentError): void;
}

/** Open when created. Disposing closes at once, without waiting for the other side. */
export interface ByteStream extends AsyncDisposable {
  /** Called once, before the first `write`. */
  listen(listener: ByteStreamListener): void;
  write(bytes: Uint8Array): void;
  /** Whether an answer is being waited for now. */
  awaiting?(yes: boolean): void;
}
