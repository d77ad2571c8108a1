// Many devices accept a single connection. A source that connects takes it from a search of this process, which follows
// over the connection of the source.
import type { Clock } from "../../../core/runtime.ts";
import { orAbort } from "../../../lib/flow/abort.ts";

/** Closes the connection of a search between two requests. False: there was none. */
type Release = () => Promise<boolean>;

/** For a device to notice the close, in milliseconds. */
const closedMs = 100;

const searches = new Set<{ readonly place: string; readonly release: Release }>();
const sources = new Set<{ readonly place: string; readonly connected: Promise<void> }>();

/** A search that may open a connection of its own. Disposing it ends the search. `place`: see `connectionOf`. */
export function enterSearch(place: string, release: Release): Disposable {
  const search = { place, release };
  searches.add(search);
  return { [Symbol.dispose]: () => void searches.delete(search) };
}

/**
 * Resolves once no search has a connection to the device. None opens one until the result is disposed. Rejects with
 * `signal.reason`.
 */
export async function takePrecedence(place: string, clock: Clock, signal: AbortSignal): Promise<Disposable> {
  const { promise: connected, resolve } = Promise.withResolvers<void>();
  const source = { place, connected };
  using claim = new DisposableStack();
  claim.defer(() => {
    sources.delete(source);
    resolve();
  });
  sources.add(source);
  const here = [...searches].filter((search) => search.place === place);
  const closed = await orAbort(Promise.all(here.map(({ release }) => release())), signal);
  if (closed.includes(true)) await clock.sleep(closedMs, signal);
  return claim.move();
}

/** Resolves when the source that connects to the device at present is connected, or has failed. Undefined: none does. */
export function sourceConnecting(place: string): Promise<void> | undefined {
  return [...sources].find((source) => source.place === place)?.connected;
}
