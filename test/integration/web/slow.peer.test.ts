// Somebody who keeps connections by sending headers a byte at a time. It takes the 12 s that headers may take.
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
  // A byte that is sent after the end of the connection resets it: the answer stands before that.
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
  // Without a look every 2 s it would be up to 40 s: 200 bytes. A process that stands still sends none.
  expect(trickled).toBeLessThan(125);
  expect((await fetch(`${web.url}/healthz`)).status).toBe(200);
});
