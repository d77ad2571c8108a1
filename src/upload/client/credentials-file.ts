// The credentials file as the service hands it out, read again whenever it changes.
import { readFile, stat } from "node:fs/promises";
import { z } from "zod";
import { AgentError } from "../../core/errors.ts";
import { Secret } from "../../core/secret.ts";

const schema = z.object({
  apiUrl: z.url(),
  integration: z.string(),
  credentials: z.object({
    /** `basic-auth`: the ID is the user name and the secret the password. */
    type: z.enum(["client-credentials", "basic-auth"]),
    clientId: z.string().min(1),
    clientSecret: z
      .string()
      .min(1)
      .transform((text) => new Secret(text)),
  }),
});
export type CredentialsContent = z.output<typeof schema>;

export class CredentialsFile {
  readonly #path: string;
  #version = "";
  #content: CredentialsContent | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** The content as it is now; the same object while the file stays the same. Rejects with `SERVICE_REFUSED`. */
  async read(): Promise<CredentialsContent> {
    try {
      const { mtimeMs, size, ino } = await stat(this.#path);
      const version = `${mtimeMs} ${size} ${ino}`;
      if (this.#content && version === this.#version) return this.#content;
      const content = parse(await readFile(this.#path, "utf8"));
      this.#version = version;
      this.#content = content;
      return content;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new AgentError("SERVICE_REFUSED", `credentials file ${this.#path}: ${reason}`, { cause: error });
    }
  }
}

/** Never puts what stands in the file into an error. */
function parse(text: string): CredentialsContent {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error("is not JSON");
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${issue?.path.join(".") ?? "it"} is missing or not as the service writes it`);
}
