// One exchange is one request: whatever happens to a connection, a posted request is not sent a second time.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { Secret } from "../../../src/core/secret.ts";
import { NotSentError, openHttpPost } from "../../../src/upload/client/http-post.ts";
import { eventually } from "../../support/eventually.ts";
import { ManualClock } from "../../support/runtime.ts";

const { signal } = new AbortController();
const body = Buffer.from("{}");

/** Answers the requests with these in turn, each after its body has arrived. */
class Peer implements AsyncDisposable {
  requests = 0;
  readonly sockets = new Set<unknown>();
  /** Also those without a request. */
  connections = 0;
  url = "";
  readonly #server: Server;

  private constructor(answers: readonly ((request: IncomingMessage, response: ServerResponse) => void)[]) {
    this.#server = createServer((request, response) => {
      this.sockets.add(request.socket);
      const answer = answers[this.requests++];
      request.resume().on("end", () => answer?.(request, response));
    });
    this.#server.on("connection", () => this.connections++);
  }

  static async open(...answers: readonly ((request: IncomingMessage, response: ServerResponse) => void)[]) {
    const peer = new Peer(answers);
    await new Promise<void>((resolve) => peer.#server.listen(0, "127.0.0.1", resolve));
    const { port } = peer.#server.address() as AddressInfo; // bound to a TCP port
    peer.url = `http://127.0.0.1:${port}`;
    const post = await openHttpPost({ url: `${peer.url}/rpc`, connections: 4 }, new ManualClock());
    return { peer, post };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const ok = (_: IncomingMessage, response: ServerResponse) => void response.end("yes");
const reset = ({ socket }: IncomingMessage) => void socket.resetAndDestroy();
const close = ({ socket }: IncomingMessage) => void socket.end();

test.for([
  ["reset", reset],
  ["closed", close],
] as const)("a request whose connection is %s before the answer is not repeated", async ([, end]) => {
  const { peer, post } = await Peer.open(ok, end, ok);
  await using _peer = peer;
  await using _post = post;
  expect(await post.post(body, {}, 100, signal)).toMatchObject({ status: 200, text: "yes" });
  await expect(post.post(body, {}, 100, signal)).rejects.toMatchObject({ code: "SERVICE_UNREACHABLE" });
  expect(peer.requests).toBe(2);
  expect(await post.post(body, {}, 100, signal)).toMatchObject({ status: 200 });
  expect(peer.requests).toBe(3);
});

test("consecutive requests share one connection, and two concurrent ones take two", async () => {
  const { peer, post } = await Peer.open(ok, ok, ok, ok);
  await using _peer = peer;
  await using _post = post;
  await post.post(body, {}, 100, signal);
  // A connection is free again one turn of the event loop after its answer.
  await new Promise(setImmediate);
  await post.post(body, {}, 100, signal);
  expect(peer.sockets.size).toBe(1);
  await new Promise(setImmediate);
  await Promise.all([post.post(body, {}, 100, signal), post.post(body, {}, 100, signal)]);
  expect(peer.sockets.size).toBe(2);
});

test("a failure closes the idle connections and does not affect a request on another connection", async () => {
  let answer = () => {};
  const held = (_: IncomingMessage, response: ServerResponse) => {
    answer = () => void response.end("late");
  };
  const { peer, post } = await Peer.open(held, reset, ok);
  await using _peer = peer;
  await using _post = post;
  const slow = post.post(body, {}, 100, signal);
  await eventually(() => peer.requests === 1);
  await expect(post.post(body, {}, 100, signal)).rejects.toMatchObject({ code: "SERVICE_UNREACHABLE" });
  answer();
  expect(await slow).toMatchObject({ text: "late" });
  await new Promise(setImmediate);
  await post.post(body, {}, 100, signal);
  expect(peer.sockets.size).toBe(3);
});

test("an answer that is too long is refused, and an aborted caller gets the reason", async () => {
  const { peer, post } = await Peer.open(ok, () => {}, ok);
  await using _peer = peer;
  await using _post = post;
  await expect(post.post(body, {}, 2, signal)).rejects.toMatchObject({ code: "SERVICE_PROTOCOL" });
  const stop = new AbortController();
  const given = post.post(body, {}, 100, stop.signal);
  stop.abort(new Error("enough"));
  await expect(given).rejects.toThrow("enough");
});

test("the connection probe finds out without a request whether the service accepts connections", async () => {
  const { peer, post } = await Peer.open(ok);
  await using _post = post;
  expect(await post.connects(signal)).toBe(true);
  expect(peer.requests).toBe(0);
  await peer[Symbol.asyncDispose]();
  expect(await post.connects(signal)).toBe(false);
  await expect(post.connects(AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
});

test("with a proxy the probe connects to the proxy", async () => {
  const { peer, post } = await Peer.open();
  await using _peer = peer;
  await post[Symbol.asyncDispose]();
  const proxy = new Secret(peer.url);
  await using behind = await openHttpPost(
    { url: "https://198.51.100.1/rpc", proxy, connections: 4 },
    new ManualClock(),
  );
  expect(await behind.connects(signal)).toBe(true);
});

test("a request whose turn ended before its connection opened is not sent, and the connection serves the next one", async () => {
  const { peer, post } = await Peer.open(ok);
  await using _peer = peer;
  await using _post = post;
  let isOpen = false;
  const turn = { start: () => isOpen };
  await expect(post.post(body, {}, 100, signal, turn)).rejects.toBeInstanceOf(NotSentError);
  isOpen = true;
  expect(await post.post(body, {}, 100, signal, turn)).toMatchObject({ status: 200 });
  expect(peer.requests).toBe(1);
  // Where connecting takes longer than a turn, only a connection that stays open can ever carry the request.
  expect(peer.connections).toBe(1);
});
