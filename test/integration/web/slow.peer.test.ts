// Somebody who keeps connections by sending headers a byte at a time. It takes the 12 s that headers may take.
import { connect } from "node:net";
import { expect, test } from "vitest";
import { openWeb } from "../../../src/web/server.ts";
import { testRuntime } from "../../support/runtime.ts";
import { statusWith } from "../../support/status.ts";

test("headers that trickle in are ended after their time, while others are answered", {
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
  socket.on("error", () => {});
  socket.write("GET / HTTP/1.1\r\nhost: localhost\r\nx: ");
  const trickle = setInterval(() => socket.write("x"), 200);
  const start = performance.now();
  let answer = "";
  for await (const chunk of socket.setEncoding("latin1")) {
    answer += chunk;
    expect((await fetch(`${web.url}/healthz`)).status).toBe(200);
  }
  clearInterval(trickle);

  expect(answer).toMatch(/^HTTP\/1.1 408 /);
  // Without a look every 2 s it would be up to 40 s.
  expect(performance.now() - start).toBeLessThan(25_000);
});
