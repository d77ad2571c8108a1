import { createServer } from "node:http";
import { expect, test } from "vitest";
import { listen } from "../../../src/lib/network/listen.ts";

test("a connection that cannot be accepted does not end the process", async () => {
  const server = createServer();
  expect(await listen(server, { host: "127.0.0.1", port: 0 }, "http.listen")).toBeGreaterThan(0);
  // The error of Node when the process has no free descriptor.
  const full = Object.assign(new Error("accept EMFILE"), { code: "EMFILE" });
  expect(() => {
    server.emit("error", full);
    server.emit("error", full);
  }).not.toThrow();
  expect(server.listening).toBe(true);
  server.close();
});

test("a port in use is named with its address and the reason", async () => {
  const first = createServer();
  const port = await listen(first, { host: "127.0.0.1", port: 0 }, "http.listen");
  await expect(listen(createServer(), { host: "127.0.0.1", port }, "http.listen")).rejects.toMatchObject({
    code: "PORT_IN_USE",
    message: `http.listen 127.0.0.1:${port}: the port is in use`,
  });
  first.close();
});
