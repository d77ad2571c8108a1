// TCP ports of the loopback interface for programs that cannot choose one themselves.
import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { inspect } from "node:util";
import { listen } from "../lib/network/listen.ts";

const host = "127.0.0.1";
/** Above are the ports that Linux gives to outgoing connections, and to servers that bind port 0. */
const range = [10_000, 32_768] as const;
const attempts = 10;
const isTaken = (error: unknown) => /EADDRINUSE|address (already )?in use|port is in use/i.test(inspect(error));

/**
 * Calls `start` with `count` different ports that are free at the time of the call. Another process may take one of
 * them before the program binds it: if `start` rejects with an error whose message or cause says that an address is in
 * use, it is called again with other ports, up to ten times. Rejects as `start` does. `start` must have ended what it
 * started when it rejects.
 */
export async function onFreePorts<T>(count: number, start: (ports: readonly number[]) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePorts(count));
    } catch (error) {
      if (attempt === attempts || !isTaken(error)) throw error;
    }
  }
}

async function freePorts(count: number): Promise<readonly number[]> {
  const free = new Set<number>();
  while (free.size < count) {
    const port = randomInt(...range);
    if (await isFree(port)) free.add(port);
  }
  return [...free];
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await listen(server, { host, port }, "a free port");
  } catch {
    return false;
  }
  await new Promise((resolve) => server.close(resolve));
  return true;
}
