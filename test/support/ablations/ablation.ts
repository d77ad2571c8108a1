/** One safeguard, what is left when it is taken out, and the test that then has to fail. */
export interface Ablation {
  readonly safeguard: string;
  /** In `src`. */
  readonly file: string;
  /** Occurs once in the file. */
  readonly code: string;
  readonly without: string;
  /** In `test`. */
  readonly test: string;
  /** Part of the names of the tests that are run; all of the file by default. Saves time where a file takes long. */
  readonly name?: string;
  /** Part of the message, where it is no assertion that fails: an error that the test would have let through, a wait without end. */
  readonly message?: string;
}
