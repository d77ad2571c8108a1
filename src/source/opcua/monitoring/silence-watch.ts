// Notices a server that neither publishes nor hangs up, and tells whether it has lost the subscription or the network the server.
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Link } from "../session/link.ts";
import { attributes } from "../session/services.ts";
import { type Counts, silenceLimitMs } from "./publishing-group.ts";

export interface SilenceOptions {
  readonly link: Link;
  readonly runtime: Runtime;
  readonly subscriptions: readonly { readonly id: number }[];
  /**
   * The session before may have left so many requests for a kept subscription at the server, which answers them first, into a
   * connection that is gone: what it says is not heard until they are used up, one each keep-alive.
   */
  readonly requests: number;
  /** Whether the server has been asked, and could answer. */
  readonly waiting: () => boolean;
  /** The server lives and has nothing to do with this subscription any more. */
  readonly lost: (subscription: number, signal: AbortSignal) => Promise<void>;
}

/** It has been silent for long: one that lives answers soon. */
const answerWithinMs = 5_000;
/** Server_ServerStatus_State. */
const serverState = 2259;

export class SilenceWatch {
  readonly #options: SilenceOptions;
  /** When each subscription was heard of last. */
  readonly #heardMs = new Map<number, number>();
  /** Those that were heard of on this connection. */
  readonly #spoken = new Set<number>();

  constructor(options: SilenceOptions) {
    this.#options = options;
    this.begin();
  }

  /** From now on the server can be expected to say something. */
  begin(): void {
    for (const { id } of this.#options.subscriptions) this.#heardMs.set(id, this.#options.runtime.clock.monotonic());
  }

  heard(subscription: number): void {
    this.#spoken.add(subscription);
    this.#heardMs.set(subscription, this.#options.runtime.clock.monotonic());
  }

  /** Whether anything was heard of it on this connection. */
  hasHeard(subscription: number): boolean {
    return this.#spoken.has(subscription);
  }

  /** Rejects with `SOURCE_*` when the subscription has been silent for too long, or with `signal.reason`. */
  async run(
    subscription: Counts & { readonly id: number; readonly origin: string },
    signal: AbortSignal,
  ): Promise<never> {
    const { link, runtime, requests, waiting, lost } = this.#options;
    const { id, origin, keepAliveCount, publishingMs } = subscription;
    const leftBehindMs = origin === "kept" ? requests * keepAliveCount * publishingMs : 0;
    for (;;) {
      const limitMs = silenceLimitMs(subscription) + (this.#spoken.has(id) ? 0 : leftBehindMs);
      const silentMs = waiting() ? runtime.clock.monotonic() - (this.#heardMs.get(id) ?? 0) : 0;
      if (silentMs >= limitMs) {
        // A server that still answers has lost the subscription; one that does not has everything, behind a broken network.
        const request = { nodesToRead: [{ nodeId: serverState, attributeId: attributes.value }] };
        const answers = await link.call("Read", request, signal, answerWithinMs).catch(() => undefined);
        signal.throwIfAborted();
        const silence = `for ${Math.round(silentMs / 1_000)} s`;
        if (!answers) throw new AgentError("SOURCE_UNREACHABLE", `the server has been silent ${silence}`);
        await lost(id, signal);
        throw new AgentError("SOURCE_PROTOCOL", `the server answers, but has published nothing ${silence}`);
      }
      await runtime.clock.sleep(Math.max(50, limitMs - silentMs), signal);
    }
  }
}
