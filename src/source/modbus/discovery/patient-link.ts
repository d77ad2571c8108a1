// A link to look around with: a device that once answered may be silent or end the connection over what it does not know.
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { UnitRequest } from "../config/pdu.ts";
import type { Result } from "../connection/exchange.ts";
import type { Link } from "../connection/link.ts";
import { type LinkConfig, openLink } from "../polling/open.ts";

export class PatientLink implements AsyncDisposable {
  readonly #open: () => Promise<Link>;
  readonly #signal: AbortSignal;
  #link: Link;
  #answered = false;

  private constructor(open: () => Promise<Link>, signal: AbortSignal, link: Link) {
    this.#open = open;
    this.#signal = signal;
    this.#link = link;
  }

  /** Connects. Rejects as `openLink` does; `signal` is that of all requests too. */
  static async open(config: LinkConfig, runtime: Runtime, signal: AbortSignal): Promise<PatientLink> {
    const open = () => openLink(config, runtime, signal);
    return new PatientLink(open, signal, await open());
  }

  /**
   * As `Link.read`. Once anything was answered, a connection that ends is opened anew and counts as silence; it rejects
   * with `SOURCE_*` when that fails, too.
   */
  async read(request: UnitRequest, timeoutMs: number): Promise<Result> {
    try {
      const result = await this.#link.read(request, timeoutMs, this.#signal);
      this.#answered ||= result.kind === "data" || result.kind === "exception";
      return result;
    } catch (error) {
      if (!this.#answered || !(error instanceof AgentError)) throw error;
      await this.#link[Symbol.asyncDispose]();
      this.#link = await this.#open();
      return { kind: "silence", mismatch: error.message, heard: true };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#link[Symbol.asyncDispose]();
  }
}
