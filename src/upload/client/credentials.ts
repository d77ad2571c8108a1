// Values of the `Authorization` header, and the credentials file.
import { readFile, stat } from "node:fs/promises";
import { z } from "zod";
import { AgentError } from "../../core/errors.ts";
import { Secret } from "../../core/secret.ts";
import { fileProblem } from "../../lib/files/file-problem.ts";

export interface Credentials extends AsyncDisposable {
  /**
   * Resolves with the value of the header. Rejects with `SERVICE_REFUSED` if credentials are missing or refused, with
   * `SERVICE_UNREACHABLE` if their issuer does not answer, or with `signal.reason`.
   */
  authorization(signal: AbortSignal): Promise<string>;
  /** Reports a refused value. Returns whether the next one will be another, possibly with new rights. */
  renew(authorization: string, lacking: "validity" | "rights"): boolean;
}

export function basicAuthorization(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;
}

/** Replacing shorter secrets would destroy much of the text. */
const shortest = 4;

/** Removes credentials that the other side may echo: the header value without its scheme, and the password. */
export function withoutCredentials(text: string, authorization: string): string {
  const [scheme, credential = ""] = authorization.split(" ");
  const decoded = scheme === "Basic" ? Buffer.from(credential, "base64").toString("utf8") : "";
  const password = decoded.slice(decoded.indexOf(":") + 1);
  const known = [credential, password, JSON.stringify(password).slice(1, -1), encodeURIComponent(password)];
  return known.filter(({ length }) => length >= shortest).reduce((shown, one) => shown.replaceAll(one, "***"), text);
}

const schema = z.object({
  apiUrl: z.url(),
  integration: z.string(),
  credentials: z.object({
    /** `basic-auth`: the client ID is the user name, the client secret the password. */
    type: z.enum(["client-credentials", "basic-auth"]),
    clientId: z.string().min(1),
    clientSecret: z
      .string()
      .min(1)
      .transform((text) => new Secret(text)),
  }),
});
export type CredentialsContent = z.output<typeof schema>;

/**
 * Returns a function that resolves with the current content of the credentials file. It returns the same object while
 * the file is unchanged, and rejects with `SERVICE_REFUSED`.
 */
export function credentialsFile(path: string): () => Promise<CredentialsContent> {
  let version = "";
  let content: CredentialsContent | undefined;
  return async () => {
    try {
      const { mtimeMs, size, ino } = await stat(path);
      const found = `${mtimeMs} ${size} ${ino}`;
      if (content && found === version) return content;
      content = parse(await readFile(path, "utf8"));
      version = found;
      return content;
    } catch (error) {
      throw new AgentError("SERVICE_REFUSED", `credentials file ${path}: ${fileProblem(error)}`, { cause: error });
    }
  };
}

/** Errors never contain content of the file. */
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
