// The log thread's end of its link, in this thread.
import { once } from "node:events";
import { expect, test } from "vitest";
import { answerRequests } from "../../../../src/buffer/disk/worker/log-thread.ts";
import type { StoreReply, StoreRequest } from "../../../../src/buffer/disk/worker/protocol.ts";
import { threadLink } from "../../../../src/buffer/disk/worker/thread-link.ts";

const reply: StoreReply = {
  error: undefined,
  block: undefined,
  resumeAt: undefined,
  newInputs: [],
  stats: undefined,
  notes: [],
  more: false,
  unread: false,
};
const request = (kind: "tick" | "work" | "close", monotonic: number): StoreRequest => ({
  kind,
  now: { wall: 0, monotonic },
});

test.each([true, false])(
  "requests are answered in their order, each once, until the last one (brisk: %s)",
  async (brisk) => {
    const { link, port } = threadLink(brisk);
    const answered: number[] = [];
    answerRequests(link, ({ now }) => {
      answered.push(now.monotonic);
      return { ...reply, resumeAt: now.monotonic };
    });
    const replies: (number | undefined)[] = [];
    port.on("message", ({ resumeAt }: StoreReply) => replies.push(resumeAt));
    const ended = once(port, "close");

    for (let i = 0; i < 50; i++) {
      port.postMessage(request(i === 49 ? "close" : i % 2 === 0 ? "tick" : "work", i));
      Atomics.add(link.requests, 0, 1);
    }
    await ended;

    expect(answered).toEqual(Array.from({ length: 50 }, (_, i) => i));
    expect(replies).toEqual(answered);
    expect(Atomics.load(link.replies, 0)).toBe(50);
  },
);

test("a request that was sent and not counted yet is answered all the same", async () => {
  const { link, port } = threadLink(true);
  answerRequests(link, ({ now }) => ({ ...reply, resumeAt: now.monotonic }));
  const replies: (number | undefined)[] = [];
  port.on("message", ({ resumeAt }: StoreReply) => replies.push(resumeAt));
  const ended = once(port, "close");

  for (let i = 0; i < 5; i++) port.postMessage(request(i === 4 ? "close" : "tick", i));
  await ended;

  expect(replies).toEqual([0, 1, 2, 3, 4]);
});
