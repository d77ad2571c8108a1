// The safeguards of points on the stream of the cluster.
import type { Ablation } from "./ablation.ts";

const loss = "unit/buffer/jetstream/cluster-loss.test.ts";
const blocked = "unit/buffer/jetstream/blocked.test.ts";
const terms = "unit/buffer/jetstream/terms.test.ts";

export const streamAblations: readonly Ablation[] = [
  {
    safeguard: "publishing the kept tail again after a loss in the cluster",
    file: "buffer/jetstream/forwarder.ts",
    code: "i > present || sequence < firstSequence",
    without: "i < 0 && sequence < firstSequence && present < 0",
    test: loss,
  },
  {
    safeguard: "what is present is told by the order of the tail, not by positions of before",
    file: "buffer/jetstream/forwarder.ts",
    code: "i > present || sequence < firstSequence",
    without: "(i > present && sequence > this.#last) || sequence < firstSequence",
    test: loss,
  },
  {
    safeguard: "publishing behind the node's own last message",
    file: "buffer/jetstream/forwarder.ts",
    code: "await this.#options.stream.publish(this.#subject, frame, id, this.#last)",
    without:
      "await this.#options.stream.publish(this.#subject, frame, id, (await this.#options.stream.last(this.#subject))?.sequence ?? 0)",
    test: loss,
  },
  {
    safeguard: "a stream that is full pauses forwarding",
    file: "buffer/jetstream/forwarder.ts",
    code: 'if (!isAgentError(error) || !error.code.startsWith("CLUSTER_")) throw error;',
    without: 'if (!isAgentError(error, "CLUSTER_UNREACHABLE")) throw error;',
    test: loss,
  },
  {
    safeguard: "times that an earlier start has published go as late",
    file: "buffer/jetstream/forwarder.ts",
    code: "block.times[block.timeStarts[at]!]! <= floor",
    without: "block.times[block.timeStarts[at]!]! < floor - 1e15",
    test: terms,
  },
  {
    safeguard: "times that another node has published go as late after a source has moved",
    file: "buffer/jetstream/forwarder.ts",
    code: "if (this.#hasMoved) await this.#raiseFloor();",
    without: "",
    test: terms,
  },
  {
    safeguard: "a frame that was published again is delivered once",
    file: "buffer/jetstream/stream-cut.ts",
    code: "if (settled.has(frame)) {",
    without: "if (at < 0 && settled.has(frame)) {",
    test: terms,
  },
  {
    safeguard: "positions do not outlive the leader of the stream",
    file: "buffer/jetstream/stream-cut.ts",
    code: "stream !== this.#stream || state.lastSequence < this.#last",
    without: "state.lastSequence < 0 && stream !== this.#stream",
    test: loss,
  },
  {
    safeguard: "late frames go in the order of the stream alone",
    file: "buffer/jetstream/stream-cut.ts",
    code: 'if (lane === "live" && frame.late) {',
    without: 'if (lane === "live" && frame.late && looks < 0) {',
    test: terms,
  },
  {
    safeguard: "a reader of an earlier term cannot settle",
    file: "buffer/jetstream/settled-frames.ts",
    code: "if (found && found.stored.token !== this.#token)",
    without: "if (found && found.stored.token === undefined)",
    test: terms,
  },
  {
    safeguard: "a settlement whose answer was lost belongs to the reader",
    file: "buffer/jetstream/settled-frames.ts",
    code: "if (found && found.stored.token !== this.#token)",
    without: "if (found)",
    test: terms,
    message: "another agent settles",
  },
  {
    safeguard: "a message that cannot be decoded holds up no other",
    file: "buffer/jetstream/stream-cut.ts",
    code: "      return decodeFrame(data);\n    } catch (error) {",
    without: "      return decodeFrame(data);\n    } catch (error) {\n      if (data) throw error;",
    test: blocked,
    message: "has version 2",
  },
  {
    safeguard: "no late message is read before one that a replica lacks for a moment",
    file: "buffer/jetstream/stream-cut.ts",
    code: 'if (read === "behind" && lane === "backlog") break;',
    without: "",
    test: blocked,
  },
  {
    safeguard: "messages with nothing but parked inputs are not read with each take",
    file: "buffer/jetstream/stream-cut.ts",
    code: "if (this.#unwanted.get(at)?.some(isWanted) === false) continue;",
    without: "",
    test: blocked,
  },
  {
    safeguard: "the names of the inputs are on the local disk",
    file: "buffer/jetstream/stream-names.ts",
    code: "if (this.#saved < this.#table.size) await this.#save();",
    without: "",
    test: blocked,
  },
  {
    safeguard: "the record of settled frames fits into one message",
    file: "buffer/jetstream/settled-frames.ts",
    code: "if (value.length <= mostBytes) break;",
    without: "if (value.length > 0) break;",
    test: blocked,
  },
  {
    safeguard: "a frame that the disk does not take keeps its name",
    file: "buffer/jetstream/forwarder.ts",
    code: "await clock.sleep(backOff.next(), signal);\n      }\n    }\n  }\n\n  /** Rejects as the stream does",
    without: "throw error;\n      }\n    }\n  }\n\n  /** Rejects as the stream does",
    test: blocked,
  },
  {
    safeguard: "another process of the same name does not make the tail come again",
    file: "buffer/jetstream/forwarder.ts",
    code: "if (isOthers) return stream !== created || sequence < firstSequence;",
    without: "",
    test: blocked,
  },
  {
    safeguard: "a source that moves while a block is awaited is known before the block is published",
    file: "buffer/jetstream/forwarder.ts",
    code: "    await this.#untilDone(signal, () => this.#verifyIfDue());\n    // As of now",
    without: "    // As of now",
    test: terms,
  },
  {
    safeguard: "a series goes as late or not, whatever is learned while it is published",
    file: "buffer/jetstream/forwarder.ts",
    code: "block.times[block.timeStarts[at]!]! <= floor",
    without: "block.times[block.timeStarts[at]!]! <= (floor && this.#floor)",
    test: terms,
  },
];
