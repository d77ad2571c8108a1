// What happens to errors that nobody caught: libraries throw from timers and sockets, and one source's library must not
// end the other sources.
import type { Logger } from "../../core/runtime.ts";

/**
 * Logs errors that nobody handles, with their stack, and lets the program go on: what is stored stays stored, and each
 * source notices by its own watchdog when its connection no longer works. Disposing it restores Node's behaviour.
 */
export function surviveDefects(log: Logger): Disposable {
  const rejected = (error: unknown) => log.error({ err: error }, "a rejection that nobody handled");
  const thrown = (error: unknown) => log.error({ err: error }, "an error that nobody caught");
  process.on("unhandledRejection", rejected);
  process.on("uncaughtException", thrown);
  return {
    [Symbol.dispose]() {
      process.off("unhandledRejection", rejected);
      process.off("uncaughtException", thrown);
    },
  };
}
