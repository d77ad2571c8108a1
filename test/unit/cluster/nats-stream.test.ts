// Reads of the shared stream while replicas differ. `integration/cluster` tests the same on real servers.
import { expect, test } from "vitest";
import type { NatsClient } from "../../../src/cluster/connection/nats-connection.ts";
import { natsStream } from "../../../src/cluster/connection/nats-jetstream.ts";

const options = { replicas: 3, maxSize: 2 ** 30, maxAge: 60_000 } as const;

/** Servers whose nearest replica and leader have messages with these sequence numbers. */
function streamOf(near: readonly number[], leader: readonly number[]) {
  const answer =
    (sequences: readonly number[]) =>
    async (_stream: string, { seq }: { readonly seq: number }) => {
      const found = sequences.find((each) => each >= seq);
      return found === undefined ? null : { seq: found, subject: "s", data: new Uint8Array() };
    };
  // The only part of the client that the stream uses.
  const client = {
    manager: { direct: { getMessage: answer(near) }, streams: { getMessage: answer(leader) } },
  } as unknown as NatsClient;
  return natsStream({ use: (_what, call) => call(client) }, options, "plant");
}

test.each([
  ["a replica that is behind does not hold up reading", [1, 2], [1, 2, 3], 3, 3],
  ["a replica that lacks a message does not make it count as lost", [1, 5], [1, 2, 5], 2, 2],
  ["a message that no replica has is passed over", [1, 5], [1, 5], 2, 5],
  ["there is nothing after the last message", [1, 2], [1, 2], 3, undefined],
])("%s", async (_what, near, leader, sequence, found) => {
  expect((await streamOf(near, leader).next(sequence))?.sequence).toBe(found);
});

test("a replica that knows no leader does not answer for the stream", async () => {
  const info = async () => ({ created: "c", state: {}, config: {}, cluster: { replicas: [] } });
  const client = { manager: { streams: { info } } } as unknown as NatsClient; // the only part that the call uses
  const stream = natsStream({ use: (_what, call) => call(client) }, options, "plant");

  await expect(stream.state()).rejects.toThrow("no leader");
});

test("a stream that others have made gets the settings that delivery needs", async () => {
  const made = { subjects: ["tagferry.points.plant.>"], retention: "interest", discard: "old", max_msg_size: 100 };
  const limits = { max_msgs: -1, max_msgs_per_subject: -1, num_replicas: 3, max_bytes: 2 ** 30, max_age: 60_000e6 };
  let config: object = { ...made, ...limits };
  const info = async () => ({ created: "c", state: { messages: 0, bytes: 0 }, config });
  const update = async (_stream: string, changes: object) => {
    config = { ...config, ...changes };
  };
  const client = { manager: { streams: { info, update } } } as unknown as NatsClient; // the only parts that the call uses
  const stream = natsStream({ use: (_what, call) => call(client) }, options, "plant");

  const { changed } = await stream.adapt();

  expect(changed).toEqual(["discard new", "allow_direct true", "max_msg_size -1", "retention limits"]);
  expect(await stream.adapt()).toEqual({ changed: [], kept: [] });
});
