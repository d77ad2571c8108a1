// The reader of the stream, on a real server.
import { describe } from "vitest";
import { natsWorld } from "../support/nats-world.ts";
import { streamPlace } from "../support/stream-place.ts";
import { type ReadPlace, readerContract } from "./buffer.ts";

function onServer(): ReadPlace {
  let place: ReturnType<typeof streamPlace> | undefined;
  const world = natsWorld({ count: 1 });
  return {
    async open() {
      const { stream, state } = await world;
      place ??= streamPlace(stream, state);
      return await place.open();
    },
    async [Symbol.asyncDispose]() {
      await place?.[Symbol.asyncDispose]();
      await (await world)[Symbol.asyncDispose]();
    },
  };
}

describe("the reader of the stream on nats-server", () => {
  readerContract(onServer);
});
