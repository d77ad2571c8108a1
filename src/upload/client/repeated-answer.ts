// Recognises an answer that repeats the one before it. A service names each input of a request in its answer: while nothing
// changes, two answers differ in the request ID alone, and what the second means is known without parsing it.
//
//   {"jsonrpc":"2.0","id":1000000007,"result":{"signalsByInput":{…}}}
//                         └─ replaced ─┘   all other bytes must be the same
import type { InputId } from "../../core/point.ts";

/** Larger answers are not kept: 10,000 inputs take about 600 kB. */
const mostBytes = 2 ** 20;

export class RepeatedAnswer {
  #body: Buffer = Buffer.alloc(0);
  #at = 0;
  #idLength = 0;
  #inputs: readonly InputId[] = [];
  #revision = 0;

  /** Whether `body` answers request `id` for `inputs` as the kept answer did. `revision`: of what its meaning depends on beside. */
  repeats(body: Buffer, id: number, inputs: readonly InputId[], revision: number): boolean {
    const text = String(id);
    if (body.length !== this.#body.length || text.length !== this.#idLength || revision !== this.#revision)
      return false;
    if (!sameInputs(inputs, this.#inputs)) return false;
    this.#body.write(text, this.#at, "latin1");
    return body.equals(this.#body);
  }

  /** Keeps the answer to request `id`, in which the caller has found that ID. It must not be changed afterwards. */
  keep(body: Buffer, id: number, inputs: readonly InputId[], revision: number): void {
    const member = `"id":${id}`;
    const text = String(id);
    const at = body.indexOf(member) + member.length - text.length;
    // Elsewhere the same digits may stand for something else.
    const isClear = body.length <= mostBytes && body.includes(member) && body.indexOf(text) === body.lastIndexOf(text);
    this.#body = isClear ? body : Buffer.alloc(0);
    this.#at = at;
    this.#idLength = isClear ? text.length : 0;
    this.#inputs = inputs;
    this.#revision = revision;
  }
}

function sameInputs(some: readonly InputId[], others: readonly InputId[]): boolean {
  if (some.length !== others.length) return false;
  for (let i = 0; i < some.length; i++) if (some[i] !== others[i]) return false;
  return true;
}
