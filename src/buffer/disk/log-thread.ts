// The log thread's end of its link: answers one request after the other, without a turn of the event loop in between while
// they come soon after one another.
import { receiveMessageOnPort } from "node:worker_threads";
import type { StoreReply, StoreRequest } from "./protocol.ts";
import { LookOut, lookOutMs, type ThreadLink } from "./thread-link.ts";

/** Answers until `close` was answered. What `answer` throws ends the thread. */
export function answerRequests(link: ThreadLink, answer: (request: StoreRequest) => StoreReply): void {
  const { port, requests, replies, brisk } = link;
  const lookOut = new LookOut();
  let received = 0;
  let answeredAt = Number.NEGATIVE_INFINITY;

  /** Says whether the next request is worth looking out for. */
  const handle = (request: StoreRequest): boolean => {
    received = (received + 1) | 0;
    const waited = performance.now() - answeredAt;
    const reply = answer(request);
    const { block } = reply;
    const columns = block ? [block.inputs, block.timeStarts, block.valueStarts, block.times, block.values] : [];
    port.postMessage(
      reply,
      columns.map(({ buffer }) => buffer),
    );
    Atomics.add(replies, 0, 1);
    answeredAt = performance.now();
    if (request.kind !== "close") return brisk && lookOut.isWorth(waited);
    port.close();
    return false;
  };
  const nextSoon = (): StoreRequest | undefined => {
    const isHere = () => Atomics.load(requests, 0) !== received;
    while (!isHere() && performance.now() - answeredAt < lookOutMs);
    lookOut.done(isHere());
    // The main thread sent it, whose types these are.
    return receiveMessageOnPort(port)?.message as StoreRequest | undefined;
  };
  port.on("message", (first: StoreRequest) => {
    for (let next: StoreRequest | undefined = first; next; ) next = handle(next) ? nextSoon() : undefined;
  });
}
