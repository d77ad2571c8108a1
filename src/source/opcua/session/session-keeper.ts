// Keeps the session alive where nothing else is asked for long, and knows how the server says that it is.
import type { Runtime } from "../../../core/runtime.ts";
import type { Link } from "./link.ts";
import type { Services } from "./services.ts";
import type { Ua } from "./stack.ts";

/** ServerState (OPC 10000-5, 12.6): what a server says of itself. */
const states = [
  "running",
  "failed",
  "not configured",
  "suspended",
  "shutting down",
  "being tested",
  "in communication fault",
  "unknown",
];
/** Server_ServerStatus_State. */
const serverState = 2259;
const mostOftenMs = 1_000;
const leastOftenMs = 60_000;

export class SessionKeeper {
  readonly #ua: Ua;
  readonly #link: Link;
  readonly #services: Services;
  readonly #runtime: Runtime;
  #state = 0;

  constructor(parts: { readonly ua: Ua; readonly link: Link; readonly services: Services; readonly runtime: Runtime }) {
    this.#ua = parts.ua;
    this.#link = parts.link;
    this.#services = parts.services;
    this.#runtime = parts.runtime;
  }

  /** In words; undefined: it runs, as it should. */
  get state(): string | undefined {
    return this.#state === 0 ? undefined : (states[this.#state] ?? "unknown");
  }

  /**
   * Asks for the state often enough for the server not to end the session: a request for notifications may wait longer
   * than the server keeps a session without requests. Until `signal` aborts. That it does not answer is for others to notice.
   */
  async run(signal: AbortSignal): Promise<never> {
    const { clock, log } = this.#runtime;
    // A server that does not tell how long it keeps a session has told zero.
    const everyMs = Math.min(leastOftenMs, Math.max(mostOftenMs, this.#link.session.timeoutMs / 3 || leastOftenMs));
    const target = { nodeId: this.#ua.makeNodeId(serverState, 0), attributeId: this.#ua.AttributeIds.Value };
    for (;;) {
      const [answer] = await this.#services.read([target], signal).catch(() => []);
      signal.throwIfAborted();
      const state = answer?.value?.value;
      if (typeof state === "number" && state !== this.#state) {
        this.#state = state;
        log.warn({ state: this.state ?? states[0] }, "the server's state has changed");
      }
      await clock.sleep(everyMs, signal);
    }
  }
}
