// Detects a silent server, and whether the subscription or the network is lost.
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Link } from "../session/link.ts";
import { attributes } from "../session/services.ts";
import { type Counts, silenceLimitMs } from "./publishing-group.ts";

export interface SilenceOptions {
  readonly link: Link;
  readonly runtime: Runtime;
  readonly subscriptions: readonly { readonly id: number }[];
  /** Number of old Publish requests, which the server answers first, into the lost connection of a kept session. */
  readonly requests: number;
  /** Whether a Publish request is in flight. */
  readonly waiting: () => boolean;
  /** Called if the server responds but no longer serves the subscription. */
  readonly lost: (subscription: number, signal: AbortSignal) => Promise<void>;
}

/** Short, since the subscription has been silent for long. */
const answerWithinMs = 5_000;
/** NodeId of Server_ServerStatus_State. */
const serverState = 2259;

export class SilenceWatch {
  readonly #options: SilenceOptions;
  readonly #receivedMs = new Map<number, number>();
  /** Subscriptions with a message on this connection. */
  readonly #receivedOnce = new Set<number>();

  constructor(options: SilenceOptions) {
    this.#options = options;
    for (const { id } of options.subscriptions) this.#receivedMs.set(id, options.runtime.clock.monotonic());
  }

  /** A time in which the server had no request does not count as silence. */
  paused(ms: number): void {
    for (const [id, received] of this.#receivedMs) this.#receivedMs.set(id, received + ms);
  }

  received(subscription: number): void {
    this.#receivedOnce.add(subscription);
    this.#receivedMs.set(subscription, this.#options.runtime.clock.monotonic());
  }

  hasReceived(subscription: number): boolean {
    return this.#receivedOnce.has(subscription);
  }

  /** Rejects with `SOURCE_*` if the subscription is silent for too long, or with `signal.reason`. */
  async run(
    subscription: Counts & { readonly id: number; readonly origin: string },
    signal: AbortSignal,
  ): Promise<never> {
    const { link, runtime, requests, waiting, lost } = this.#options;
    const { id, origin, keepAliveCount, publishingMs } = subscription;
    const leftBehindMs = origin === "kept" ? requests * keepAliveCount * publishingMs : 0;
    for (;;) {
      const limitMs = silenceLimitMs(subscription) + (this.#receivedOnce.has(id) ? 0 : leftBehindMs);
      const silentMs = waiting() ? runtime.clock.monotonic() - (this.#receivedMs.get(id) ?? 0) : 0;
      if (silentMs >= limitMs) {
        // A server that answers has lost the subscription. Otherwise, the network is broken.
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
