// The devices that pages look at now. Each is closed when no page asks for it any more.
import { randomBytes } from "node:crypto";
import type { BrowseTarget, Explorer } from "../../core/commissioning.ts";
import type { Driver } from "../../core/driver.ts";
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { collect, followListener } from "./collected.ts";

/** A connection that a page has opened. */
export interface Look {
  readonly id: string;
  readonly driver: Driver;
  readonly target: BrowseTarget;
  /** Name of the configured source. Undefined: a typed address. */
  readonly source: string | undefined;
  readonly explorer: Explorer;
}

const mostLooks = 4;
/** A page asks for values every few seconds. */
const idleMs = 120_000;
const idBytes = 12;

interface OpenLook {
  readonly look: Look;
  readonly stop: AbortController;
  usedAt: number;
}

export class Looks implements AsyncDisposable {
  readonly #runtime: Runtime;
  readonly #open = new Map<string, OpenLook>();
  #opening = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Connects. Rejects as `Driver.browse` does, and with `SOURCE_REFUSED` if too many devices are looked at. */
  async open(
    { driver, target, source }: Pick<Look, "driver" | "target" | "source">,
    signal: AbortSignal,
  ): Promise<Look> {
    if (this.#open.size + this.#opening >= mostLooks)
      throw new AgentError("SOURCE_REFUSED", `${mostLooks} devices are being looked at`, {
        hint: "close another page of this kind, or wait two minutes",
      });
    this.#opening++;
    const stop = new AbortController();
    // A page that is closed while it connects needs no connection.
    const leave = () => stop.abort(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    try {
      const explorer = await explore(driver, target, this.#runtime, stop);
      if (signal.aborted) {
        await explorer[Symbol.asyncDispose]();
        signal.throwIfAborted();
      }
      const look: Look = { id: randomBytes(idBytes).toString("base64url"), driver, target, source, explorer };
      this.#open.set(look.id, { look, stop, usedAt: this.#runtime.clock.monotonic() });
      void this.#closeWhenIdle(look.id, stop.signal);
      return look;
    } finally {
      signal.removeEventListener("abort", leave);
      this.#opening--;
    }
  }

  /** Undefined: it was closed, or the agent has restarted. */
  find(id: string): Look | undefined {
    const open = this.#open.get(id);
    if (open) open.usedAt = this.#runtime.clock.monotonic();
    return open?.look;
  }

  /** Does nothing if it is closed already. */
  async close(id: string): Promise<void> {
    const open = this.#open.get(id);
    if (!open) return;
    this.#open.delete(id);
    open.stop.abort(new Error("no page looks at it any more"));
    try {
      await open.look.explorer[Symbol.asyncDispose]();
    } catch (error) {
      this.#runtime.log.debug({ part: "web", err: error }, "a connection for browsing did not close cleanly");
    }
  }

  async #closeWhenIdle(id: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.#runtime;
    for (let open = this.#open.get(id); open; open = this.#open.get(id)) {
      const restMs = idleMs - (clock.monotonic() - open.usedAt);
      if (restMs <= 0) return await this.close(id);
      // Rejects when the look is closed.
      await clock.sleep(restMs, signal).catch(() => {});
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#open.keys()].map((id) => this.close(id)));
  }
}

async function explore(driver: Driver, target: BrowseTarget, runtime: Runtime, stop: AbortController) {
  if (driver.explore) return await driver.explore(target, runtime, stop.signal);
  if (driver.listen) return followListener(await driver.listen(target, runtime, stop.signal), runtime.clock);
  if (driver.search) {
    const search = await driver.search(target, runtime, stop.signal);
    return collect(search.nodes(), stop, search);
  }
  if (driver.browse) return collect(driver.browse(target, runtime, stop.signal), stop);
  throw new AgentError("CONFIG_INVALID", `${driver.example.protocol} has nothing to browse`);
}
