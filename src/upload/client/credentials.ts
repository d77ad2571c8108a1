// What goes into the `Authorization` header, and the credentials file that it may come from.
import { readFile, stat } from "node:fs/promises";
import { z } from "zod";
import { AgentError, reasonOf } from "../../core/errors.ts";
import { Secret } from "../../core/secret.ts";

export interface Credentials extends AsyncDisposable {
  /**
   * The header's value. Rejects with `SERVICE_REFUSED` when there are no credentials or the issuer refuses them, with
   * `SERVICE_UNREACHABLE` when it does not answer, or with `signal.reason`.
   */
  authorization(signal: AbortSignal): Promise<string>;
  /**
   * The service does not take this value (401), or does not permit what was asked with it: rights given since it was issued
   * may be in the next one. True when the next one will be another one.
   */
  renew(authorization: string, lacking: "validity" | "rights"): boolean;
}

export function basicAuthorization(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;
}

/** Shorter ones would take half of the text along. */
const shortest = 4;

/**
 * What the other side says, without the credentials it was shown: proxies and services under test give back the request
 * that they refuse. The header's value without its scheme is looked for, and the password in it.
 */
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

/**
 * Gives a function that resolves with the credentials file as it is now, as the service hands it out; the same object while
 * the file stays the same. It rejects with `SERVICE_REFUSED`.
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
      throw new AgentError("SERVICE_REFUSED", `credentials file ${path}: ${reasonOf(error)}`, { cause: error });
    }
  };
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
