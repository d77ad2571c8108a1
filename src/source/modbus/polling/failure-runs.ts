// How often in a row each block of a unit failed, while the unit as such answers. Pure.

/** Some devices say nothing, or that they failed, when they are asked for too much: after so many times halves are tried. */
export const failuresToSplit = 3;

/** By block; what becomes of a block nobody asks for any more is of no matter. */
export class FailureRuns {
  #runs = new WeakMap<object, number>();

  /** One more; gives how many in a row that is. */
  add(block: object): number {
    const failures = (this.#runs.get(block) ?? 0) + 1;
    this.#runs.set(block, failures);
    return failures;
  }

  end(block: object): void {
    this.#runs.delete(block);
  }

  endAll(): void {
    this.#runs = new WeakMap();
  }
}

/** Whether it is time to look for the cause in the block, which costs requests: after 3, 6, 12, 24 … failures. */
export function isTimeToSplit(failures: number): boolean {
  return failures >= failuresToSplit && Number.isInteger(Math.log2(failures / failuresToSplit));
}
