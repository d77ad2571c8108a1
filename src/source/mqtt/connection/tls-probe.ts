// Whether a port that did not answer MQTT speaks TLS. Says nothing but a ClientHello, and neither trusts nor sends anything.
import { connect } from "node:tls";

/** Milliseconds. */
const answerWithin = 3_000;

/** Resolves with false where the port cannot be reached or answers something else. Rejects with `signal.reason` only. */
export async function speaksTls({ host, port }: { readonly host: string; readonly port: number }, signal: AbortSignal) {
  signal.throwIfAborted();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({
    host,
    port,
    rejectUnauthorized: false,
    ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
  });
  const timer = setTimeout(() => resolve(false), answerWithin);
  const abort = () => resolve(false);
  signal.addEventListener("abort", abort, { once: true });
  socket.on("secureConnect", () => resolve(true));
  // An alert, as of a server that wants a certificate of ours, is TLS, too.
  socket.on("error", (error) => resolve("code" in error && /^ERR_SSL_.*ALERT/.test(String(error.code))));
  socket.on("close", () => resolve(false));
  try {
    const speaks = await promise;
    signal.throwIfAborted();
    return speaks;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    socket.destroy();
  }
}
