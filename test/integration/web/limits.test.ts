// What a malicious client can do to the page.
import { connect } from "node:net";
import { expect, test } from "vitest";
import type { Runtime } from "../../../src/core/runtime.ts";
import { Secret } from "../../../src/core/secret.ts";
import { openWeb, type WebOptions } from "../../../src/web/server.ts";
import { eventually } from "../../support/eventually.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { statusWith } from "../../support/status.ts";

function open(options: Pick<WebOptions, "readToken"> = {}, runtime: Runtime = testRuntime()) {
  return openWeb(
    {
      listen: { host: "127.0.0.1", port: 0 },
      snapshot: () => statusWith(),
      metrics: async () => "",
      health: () => ({ ok: true }),
      ready: () => ({ ok: true }),
      ...options,
    },
    runtime,
    new AbortController().signal,
  );
}

/** Everything received until the server closes the connection. */
async function answerTo(url: string, text: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.on("error", () => {});
  socket.write(text);
  let answer = "";
  for await (const chunk of socket.setEncoding("latin1")) answer += chunk;
  return answer;
}

const head = (more: string) => `GET /api/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${more}\r\n`;

test.each([
  ["a header of 20 KB", head(`cookie: ${"x".repeat(20_000)}\r\n`), "431"],
  ["an address of 20 KB", `GET /${"x".repeat(20_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`, "431"],
  ["a name in the header that is none", head("a b: c\r\n"), "400"],
  ["two lengths of one body", head("content-length: 1\r\ncontent-length: 2\r\n"), "400"],
  ["a length and chunks of one body", head("content-length: 1\r\ntransfer-encoding: chunked\r\n"), "400"],
  ["bytes that are no request", "\u0016\u0003\u0001\u0002\r\n\r\n", "400"],
])("%s is refused, and the next request is answered", async (_, request, status) => {
  await using web = await open();
  expect(await answerTo(web.url, request)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(await answerTo(web.url, head(""))).toMatch(/^HTTP\/1.1 200 /);
});

test("connections beyond the limit are closed, and existing ones continue", async () => {
  await using web = await open();
  const sockets = Array.from({ length: 129 }, () => connect(Number(new URL(web.url).port), "127.0.0.1"));
  const ended = Promise.race(
    sockets.map(
      (socket, i) => new Promise<number>((resolve) => socket.on("error", () => {}).once("close", () => resolve(i))),
    ),
  );
  const refused = await ended;
  const [first] = sockets.filter((_, i) => i !== refused);
  first?.write(head(""));
  let answer = "";
  for await (const chunk of first?.setEncoding("latin1") ?? []) answer += chunk;
  expect(answer).toMatch(/^HTTP\/1.1 200 /);
  for (const socket of sockets) socket.destroy();
});

test("a wrong token is answered after a second, and the right one at once", async () => {
  const clock = new ManualClock();
  await using web = await open({ readToken: new Secret("the-right-token-0") }, testRuntime({ clock }));
  const status = (token: string) =>
    fetch(`${web.url}/metrics`, { headers: { authorization: `Bearer ${token}` } }).then((answer) => answer.status);
  let answered: number | undefined;
  void status("the-right-token-1").then((code) => (answered = code));

  // Time stands still, and these are answered one after the other.
  for (let i = 0; i < 5; i++) expect(await status("the-right-token-0")).toBe(200);
  expect(answered).toBeUndefined();

  // Whenever the request has arrived, a second later it is answered.
  expect(await eventually(() => clock.advance(1_000).then(() => answered))).toBe(401);
});
