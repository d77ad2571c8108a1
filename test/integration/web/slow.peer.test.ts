// A client that keeps a connection open by sending headers byte by byte. Takes the 12 s of the header timeout.
import { connect } from "node:net";
import { expect, test } from "vitest";
import { openWeb } from "../../../src/web/server.ts";
import { testRuntime } from "../../support/runtime.ts";
import { statusWith } from "../../support/status.ts";

test("slow headers are closed after their timeout, while others are answered", {
  timeout: 120_000,
}, async () => {
  await using web = await openWeb(
    {
      listen: { host: "127.0.0.1", port: 0 },
      snapshot: () => statusWith(),
      metrics: async () => "",
      health: () => ({ ok: true }),
      ready: () => ({ ok: true }),
    },
    testRuntime(),
    new AbortController().signal,
  );
  const socket = connect(Number(new URL(web.url).port), "127.0.0.1");
  // A byte sent after the server has closed resets the connection. The answer has arrived by then.
  socket.on("error", () => {});
  let answer = "";
  socket.setEncoding("latin1").on("data", (chunk) => {
    answer += chunk;
  });
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.write("GET / HTTP/1.1\r\nhost: localhost\r\nx: ");
  let trickled = 0;
  const trickle = setInterval(() => {
    trickled++;
    socket.write("x");
  }, 200);
  expect((await fetch(`${web.url}/healthz`)).status).toBe(200);
  expect(answer).toBe("");
  await ended;
  clearInterval(trickle);

  expect(answer).toMatch(/^HTTP\/1.1 408 /);
  // The server checks for timeouts every 2 s, so at most about 14 s at 5 bytes a second. At Node's default interval it
  // would be up to 40 s, or 200 bytes. A stalled process sends none.
  expect(trickled).toBeLessThan(125);
  expect((await fetch(`${web.url}/healthz`)).status).toBe(200);
});
