/** A safeguard, the code that remains when it is removed, and the test that must then fail. */
export interface Ablation {
  readonly safeguard: string;
  /** Path below `src`. */
  readonly file: string;
  /** Occurs once in the file. */
  readonly code: string;
  readonly without: string;
  /** Path below `test`. */
  readonly test: string;
  /** A part of the names of the tests to run; default: all tests of the file. Shortens the run of slow files. */
  readonly name?: string;
  /**
   * A part of the error message, where the test fails with an error other than an assertion: an exception or a timeout.
   */
  readonly message?: string;
}
