// Ports for programs that cannot choose one, when another process takes them first.
import { createServer, type Server } from "node:net";
import { expect, test } from "vitest";
import { onFreePorts } from "../../../src/demo/free-ports.ts";
import { listen } from "../../../src/lib/network/listen.ts";

const listeningOn = async (port: number): Promise<Server & AsyncDisposable> => {
  const server = createServer();
  await listen(server, { host: "127.0.0.1", port }, "the program");
  return server;
};

test("a program whose port another process takes before it does is started on other ports", async () => {
  await using opened = new AsyncDisposableStack();
  const tried: (readonly number[])[] = [];
  await onFreePorts(3, async (ports) => {
    tried.push(ports);
    if (tried.length === 1) opened.use(await listeningOn(ports[1]!));
    for (const port of ports) opened.use(await listeningOn(port));
  });
  expect(tried).toHaveLength(2);
  expect(new Set(tried.flat()).size).toBeGreaterThan(3);
});

test("a program that ends for another reason is not started again, and its error reaches the caller", async () => {
  let starts = 0;
  const start = () => {
    starts++;
    return Promise.reject(new Error("unknown option"));
  };
  await expect(onFreePorts(1, start)).rejects.toThrow("unknown option");
  expect(starts).toBe(1);
});

test("a program that never finds its ports free fails with its own error", async () => {
  const start = () => Promise.reject(new Error("cannot start", { cause: "bind: address already in use" }));
  await expect(onFreePorts(1, start)).rejects.toThrow("cannot start");
});
