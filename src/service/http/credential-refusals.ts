// Wrong passwords and client secrets: when they are refused, and who is told.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock, Runtime } from "../../core/runtime.ts";
import { RateLimitedLog } from "../../lib/rate-limited-log.ts";
import { GuessBrake } from "./guess-brake.ts";
import { HttpRefusal } from "./http-answer.ts";

export class CredentialRefusals {
  readonly #clock: Clock;
  readonly #log: RateLimitedLog;
  readonly #brake: GuessBrake;

  constructor(runtime: Runtime) {
    this.#clock = runtime.clock;
    this.#log = new RateLimitedLog(runtime);
    this.#brake = new GuessBrake(runtime.clock);
  }

  /**
   * Resolves when the request may be refused with 401. Rejects with `HttpRefusal` 429 when too many wrong secrets wait,
   * or with another error when the client went away. The right secret is let in without asking here.
   */
  async turn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const address = request.socket.remoteAddress ?? "";
    this.#log.warn({ part: "service", address }, "wrong credentials");
    const delayMs = this.#brake.delayMs(address);
    if (delayMs === undefined)
      throw new HttpRefusal(429, "too_many_requests", "too many wrong credentials; the right ones are let in at once", {
        "retry-after": "8",
      });
    if (delayMs === 0) return;
    const gone = new AbortController();
    response.once("close", () => gone.abort(new Error("the client went away")));
    await this.#clock.sleep(delayMs, gone.signal);
  }
}
