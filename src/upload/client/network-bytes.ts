// Bytes exchanged with the service on its TCP connections, with TLS and HTTP headers. IP and TCP headers are not included.
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Metrics } from "../../core/runtime.ts";

const bytes = {
  name: "upload_network_bytes_total",
  help: "Bytes exchanged with the service in both directions, with TLS and HTTP headers, without those of IP and TCP",
  labels: ["direction"],
} as const;

interface Counted {
  readonly bytesWritten: number;
  readonly bytesRead: number;
}

export class NetworkBytes {
  readonly #metrics: Metrics;
  readonly #known = new Map<Socket, Counted>();
  #sent = 0;
  #received = 0;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /** Counts a connection from now on, with what it has carried before. */
  watch(socket: Socket): void {
    this.#known.set(socket, { bytesWritten: 0, bytesRead: 0 });
    socket.once("close", () => {
      this.#count(socket);
      this.#known.delete(socket);
    });
  }

  /** Totals since the start. */
  read(): { readonly sentBytes: number; readonly receivedBytes: number } {
    for (const socket of this.#known.keys()) this.#count(socket);
    return { sentBytes: this.#sent, receivedBytes: this.#received };
  }

  #count(socket: Socket): void {
    const before = this.#known.get(socket);
    const now = countsOf(socket);
    if (!before || !now) return;
    this.#known.set(socket, now);
    const sent = now.bytesWritten - before.bytesWritten;
    const received = now.bytesRead - before.bytesRead;
    this.#sent += sent;
    this.#received += received;
    this.#metrics.counter(bytes).add(sent, { direction: "sent" });
    this.#metrics.counter(bytes).add(received, { direction: "received" });
  }
}

/** A TLS socket counts what it encrypts; the TCP connection below it is in fields that Node does not document. */
function countsOf(socket: Socket): Counted | undefined {
  if (!(socket instanceof TLSSocket)) return { bytesWritten: socket.bytesWritten, bytesRead: socket.bytesRead };
  const below: unknown = handleOf(socket, "_handle", "_parent");
  return isCounted(below) ? { bytesWritten: below.bytesWritten, bytesRead: below.bytesRead } : undefined;
}

function handleOf(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (from, name) => (typeof from === "object" && from !== null ? Reflect.get(from, name) : undefined),
    value,
  );
}

function isCounted(value: unknown): value is Counted {
  return typeof handleOf(value, "bytesWritten") === "number" && typeof handleOf(value, "bytesRead") === "number";
}
