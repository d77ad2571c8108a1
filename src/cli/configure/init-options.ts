// What `tagferry init` may be told beforehand, by flags or by a file of answers.

import type { SecurityMode } from "../../lib/security-mode.ts";

/** Where a password is: it never stands in an argument, which every user of the machine can see. */
export type PasswordPlace =
  /** Relative to the folder of the configuration, or absolute. */
  | { readonly file: string }
  /** Name of an environment variable. */
  | { readonly env: string };

/** Answers about one source. */
export interface SourceAnswers {
  readonly url: string;
  readonly name?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: PasswordPlace | undefined;
  /** Thumbprint of the server's certificate, which a person has compared. */
  readonly trust?: string | undefined;
  /** `security.mode` of the source; `none` reads it without security. */
  readonly securityMode?: SecurityMode | undefined;
  /** Sends the password though nothing protects it. */
  readonly allowInsecurePassword?: boolean | undefined;
  /** PEM file with the certificate authorities to trust. */
  readonly caFile?: string | undefined;
}

export interface InitOptions {
  /** Where it is written; `-`: standard output. */
  readonly config: string;
  readonly name?: string | undefined;
  readonly service?: string | undefined;
  readonly integration?: string | undefined;
  /** Password of the integration. */
  readonly password?: PasswordPlace | undefined;
  readonly sources: readonly SourceAnswers[];
  /** Asks nothing. */
  readonly unattended: boolean;
  /** Contacts no source. */
  readonly offline: boolean;
}
