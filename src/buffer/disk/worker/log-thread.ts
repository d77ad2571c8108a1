// The log thread's end of its link: answers one request after the other, without a turn of the event loop in between while
// they come soon after one another.
import { receiveMessageOnPort } from "node:worker_threads";
import type { Loss } from "../../../core/buffer.ts";
import type { ShelfBlock } from "../blocks/block-layout.ts";
import type { StoreReply, StoreRequest } from "./protocol.ts";
import { putReply, type SharedRequest, takeRequest } from "./shared-append.ts";
import { LookOut, type ThreadLink } from "./thread-link.ts";

/** Answers until `close` was answered. What `answer` throws ends the thread. */
export function answerRequests(link: ThreadLink, answer: (request: StoreRequest) => StoreReply): void {
  const { port, requests, replies, append, brisk } = link;
  const lookOut = new LookOut();
  /** Losses told last. */
  let losses: readonly Loss[] = [];
  let received = 0;
  let answeredAt = Number.NEGATIVE_INFINITY;

  /** Says whether the next request is worth looking out for. */
  const handle = (sent: StoreRequest | SharedRequest): boolean => {
    received = (received + 1) | 0;
    const waited = performance.now() - answeredAt;
    const isShared = "points" in sent;
    const request = isShared ? takeRequest(append, sent) : sent;
    const reply = answer(request);
    const counts = isShared ? putReply(append, reply, losses) : undefined;
    losses = reply.stats?.losses ?? losses;
    port.postMessage(counts ?? reply, reply.block ? columnsOf(reply.block) : []);
    Atomics.add(replies, 0, 1);
    answeredAt = performance.now();
    if (request.kind !== "close") return brisk && lookOut.isWorth(waited);
    port.close();
    return false;
  };
  const nextSoon = (): StoreRequest | SharedRequest | undefined => {
    const isHere = () => Atomics.load(requests, 0) !== received;
    lookOut.begin();
    while (!isHere()) if (!lookOut.goesOn(answeredAt)) return undefined;
    // The main thread sent it, whose types these are.
    return receiveMessageOnPort(port)?.message as StoreRequest | SharedRequest | undefined;
  };
  port.on("message", (first: StoreRequest | SharedRequest) => {
    for (let next: StoreRequest | SharedRequest | undefined = first; next; )
      next = handle(next) ? nextSoon() : undefined;
  });
}

/** They change hands with the reply. */
function columnsOf({ inputs, timeStarts, valueStarts, times, values, late }: ShelfBlock): ArrayBuffer[] {
  return [inputs, timeStarts, valueStarts, times, values, late].map(({ buffer }) => buffer);
}
