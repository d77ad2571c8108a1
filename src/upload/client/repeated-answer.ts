// Detects answers that repeat an earlier one. The service names each input of a request in its answer. While nothing
// changes, answers differ only in the request ID, and need not be parsed again.
//
//   {"jsonrpc":"2.0","id":1000000007,"result":{"signalsByInput":{…}}}
//                         └─ replaced ─┘   all other bytes must be equal
import type { InputId } from "../../core/point.ts";

/** Largest cached answer. 10,000 inputs take about 600 kB. */
const mostBytes = 2 ** 20;
/** Requests for all inputs may alternate with requests for a few, each time others. */
const mostKept = 2;

interface Kept {
  readonly body: Buffer;
  readonly at: number;
  readonly digits: number;
  readonly inputs: readonly InputId[];
  readonly revision: number;
}

export class RepeatedAnswer {
  /** Most recently used first. */
  #kept: readonly Kept[] = [];

  /** Whether `body` repeats a cached answer. `revision`: version of other state that affects the meaning. */
  repeats(body: Buffer, id: number, inputs: readonly InputId[], revision: number): boolean {
    const text = String(id);
    const repeated = this.#kept.find((kept) => {
      if (body.length !== kept.body.length || text.length !== kept.digits || revision !== kept.revision) return false;
      if (!sameInputs(inputs, kept.inputs)) return false;
      kept.body.write(text, kept.at, "latin1");
      return body.equals(kept.body);
    });
    if (repeated) this.#kept = [repeated, ...this.#kept.filter((kept) => kept !== repeated)];
    return repeated !== undefined;
  }

  /** Caches the answer to request `id`, which must contain that ID. `body` must not change afterwards. */
  keep(body: Buffer, id: number, inputs: readonly InputId[], revision: number): void {
    const text = String(id);
    const member = `"id":${text}`;
    const at = body.indexOf(member) + member.length - text.length;
    // The digits of the ID must not occur elsewhere with another meaning.
    if (body.length > mostBytes || !body.includes(member) || body.indexOf(text) !== body.lastIndexOf(text)) return;
    const others = this.#kept.filter((kept) => !sameInputs(kept.inputs, inputs));
    this.#kept = [{ body, at, digits: text.length, inputs, revision }, ...others].slice(0, mostKept);
  }
}

function sameInputs(some: readonly InputId[], others: readonly InputId[]): boolean {
  if (some === others) return true;
  if (some.length !== others.length) return false;
  for (let i = 0; i < some.length; i++) if (some[i] !== others[i]) return false;
  return true;
}
