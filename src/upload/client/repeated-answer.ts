// Recognises an answer that repeats an earlier one. A service names each input of a request in its answer: while nothing
// changes, two answers differ in the request ID alone, and what the second means is known without parsing it.
//
//   {"jsonrpc":"2.0","id":1000000007,"result":{"signalsByInput":{…}}}
//                         └─ replaced ─┘   all other bytes must be the same
import type { InputId } from "../../core/point.ts";

/** Larger answers are not kept: 10,000 inputs take about 600 kB. */
const mostBytes = 2 ** 20;
/** Requests for all inputs may take turns with those for a few. */
const mostKept = 2;

interface Kept {
  readonly body: Buffer;
  /** Where the request ID stands, and its digits. */
  readonly at: number;
  readonly digits: number;
  readonly inputs: readonly InputId[];
  readonly revision: number;
}

export class RepeatedAnswer {
  /** The last one first. */
  #kept: readonly Kept[] = [];

  /** Whether `body` answers request `id` for `inputs` as a kept answer did. `revision`: of what its meaning depends on beside. */
  repeats(body: Buffer, id: number, inputs: readonly InputId[], revision: number): boolean {
    const text = String(id);
    return this.#kept.some((kept) => {
      if (body.length !== kept.body.length || text.length !== kept.digits || revision !== kept.revision) return false;
      if (!sameInputs(inputs, kept.inputs)) return false;
      kept.body.write(text, kept.at, "latin1");
      return body.equals(kept.body);
    });
  }

  /** Keeps the answer to request `id`, in which the caller has found that ID. It must not be changed afterwards. */
  keep(body: Buffer, id: number, inputs: readonly InputId[], revision: number): void {
    const text = String(id);
    const member = `"id":${text}`;
    const at = body.indexOf(member) + member.length - text.length;
    // Elsewhere the same digits may stand for something else.
    if (body.length > mostBytes || !body.includes(member) || body.indexOf(text) !== body.lastIndexOf(text)) return;
    const others = this.#kept.filter((kept) => !sameInputs(kept.inputs, inputs));
    this.#kept = [{ body, at, digits: text.length, inputs, revision }, ...others].slice(0, mostKept);
  }
}

function sameInputs(some: readonly InputId[], others: readonly InputId[]): boolean {
  if (some.length !== others.length) return false;
  for (let i = 0; i < some.length; i++) if (some[i] !== others[i]) return false;
  return true;
}
