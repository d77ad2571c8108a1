// The reader of the stream, on a stream in memory.
import { describe } from "vitest";
import { memoryBucket } from "../support/memory-bucket.ts";
import { memoryStream } from "../support/memory-stream.ts";
import { streamPlace } from "../support/stream-place.ts";
import { readerContract } from "./buffer.ts";

describe("the reader of the stream", () => {
  readerContract(() => streamPlace(memoryStream(), memoryBucket()));
});
