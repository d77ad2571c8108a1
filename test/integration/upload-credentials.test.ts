// Tokens: fetched once for all requests, renewed ahead of time, kept across restarts. Delivery never stops for them.
import { readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openAgent } from "../../src/agent/agent.ts";
import { processEnvironment } from "../../src/config/files/environment.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { InputId } from "../../src/core/point.ts";
import { serviceOptions } from "../../src/upload/client/options.ts";
import { eventually } from "../support/eventually.ts";
import { expectMode } from "../support/platform.ts";
import { testRuntime } from "../support/runtime.ts";
import { accepts, answers, type Behaviour, ScriptedService } from "../support/scripted-service.ts";
import { integration, testService } from "../support/service.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";
import { type UploadingOptions, uploading } from "../support/uploading.ts";

const insert = "integration.insert";
const secret = "client-secret-canary";

class Issuer implements AsyncDisposable {
  readonly forms: URLSearchParams[] = [];
  lifetimeSeconds = 3_600;
  status = 200;
  readonly #server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    this.forms.push(new URLSearchParams(body));
    const token = {
      access_token: `token-${this.forms.length}`,
      expires_in: this.lifetimeSeconds,
      token_type: "Bearer",
    };
    response.writeHead(this.status).end(JSON.stringify(this.status === 200 ? token : { error: "access_denied" }));
  });

  static async open(): Promise<Issuer> {
    const issuer = new Issuer();
    await new Promise<void>((resolve) => issuer.#server.listen(0, "127.0.0.1", resolve));
    return issuer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/oauth/token`; // bound to a TCP port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function credentials(folder: TemporaryFolder, apiUrl: string, changes: Record<string, string> = {}): string {
  const file = folder.file("credentials.json");
  const { type = "client-credentials", clientId = "client", clientSecret = secret } = changes;
  writeFileSync(file, JSON.stringify({ apiUrl, integration, credentials: { type, clientId, clientSecret } }));
  return file;
}

function withToken(service: { readonly url: string }, folder: TemporaryFolder, issuer: Issuer): UploadingOptions {
  const file = credentials(folder, service.url);
  return {
    url: service.url,
    speed: 200,
    folder: folder.path,
    service: { auth: { clientCredentials: { file, tokenUrl: issuer.url } } },
  };
}

const sentWith = (service: ScriptedService) => service.requests(insert).map(({ headers }) => headers.authorization);
const only =
  (token: string): Behaviour =>
  (exchange) =>
    (exchange.response.req.headers.authorization === `Bearer ${token}` ? accepts : answers(401))(exchange);

test("a password that changes in its file is used without a restart, and a reload finds nothing to restart for", async () => {
  using folder = temporaryFolder();
  await using service = await ScriptedService.open();
  const accepted = (password: string) => `Basic ${Buffer.from(`${integration}:${password}`).toString("base64")}`;
  let valid = accepted("first");
  service.otherwise = (exchange) =>
    (exchange.response.req.headers.authorization === valid ? accepts : answers(401))(exchange);
  const password = folder.file("password");
  writeFileSync(password, "first\n");
  writeFileSync(
    folder.file("tagferry.yaml"),
    `version: 1
agent: { dataDir: data, ownSignals: off }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "\${file:password}" } } }
sources: { waves: { type: simulator, tags: [{ input: sine, every: 100ms }] } }
`,
  );
  const environment = { ...processEnvironment(), cwd: folder.path };
  const config = () => loadConfig("tagferry.yaml", environment);
  const { signal } = new AbortController();
  await using agent = await openAgent(await config(), { version: "0" }, testRuntime(), signal);
  await eventually(() => service.stored.size > 0);

  valid = accepted("second");
  await eventually(() => agent.status().upload.state === "held");
  writeFileSync(password, "second\n");
  const before = service.stored.size;
  await eventually(() => service.stored.size > before);
  expect((await agent.reload(await config())).needRestart).toEqual([]);

  // The service takes the next one later, so that no refusal tells of it before the reload.
  writeFileSync(password, "third\n");
  expect((await agent.reload(await config())).needRestart).toEqual([]);
  valid = accepted("third");
  const stored = service.stored.size;
  await eventually(() => service.stored.size > stored);
});

test("a password file that cannot be read leaves the password as it was", async () => {
  using folder = temporaryFolder();
  const file = folder.file("password");
  writeFileSync(file, "first");
  const text = (name: string) =>
    `version: 1\nservice: { url: "http://127.0.0.1:1/v1", integration: ${integration}, auth: { basic: { password: "${name}" } } }\n`;
  writeFileSync(folder.file("tagferry.yaml"), text("${file:password}"));
  const environment = { ...processEnvironment(), cwd: folder.path };
  const { password } = (await loadConfig("tagferry.yaml", environment)).service.auth.basic!;
  rmSync(file);
  await password.renew();
  expect(password.reveal()).toBe("first");
  writeFileSync(file, "second");
  await password.renew();
  expect(password.reveal()).toBe("second");
});

test("the local service takes points with a token from its own issuer", async () => {
  await using service = await testService({
    integrations: [{ id: integration, clientId: "client", clientSecret: serviceSecret(), grants: [] }],
  });
  using folder = temporaryFolder();
  const file = credentials(folder, service.url);
  await using upload = await uploading({
    url: service.url,
    folder: folder.path,
    service: { auth: { clientCredentials: { file } } },
  });
  upload.reader.append({ a: [[upload.runtime.clock.now(), 1]] });
  await eventually(() => upload.reader.empty);
  expect(upload.uploader.status()).toMatchObject({ points: 1, requests: { failed: 0 } });
});

test("one token serves inserts and metadata, and the next start", async () => {
  await using service = await ScriptedService.open();
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  const options = withToken(service, folder, issuer);
  for (let start = 0; start < 2; start++) {
    await using upload = await uploading(options);
    upload.catalog.describe(`a${start}` as InputId, {});
    upload.reader.append({ [`a${start}`]: [[1e15, 1]], b: [[1e15 + start, 2]] });
    await eventually(() => upload.reader.empty && upload.catalog.pending.size === 0);
  }
  expect(issuer.forms.map((form) => Object.fromEntries(form))).toEqual([
    { grant_type: "client_credentials", client_id: "client", client_secret: secret, audience: `${service.url}/` },
  ]);
  expect(new Set(service.seen.map(({ headers }) => headers.authorization))).toEqual(new Set(["Bearer token-1"]));
  expectMode(folder.file("upload/token.json"), 0o600);
});

test("a token is renewed before it expires", async () => {
  await using service = await ScriptedService.open();
  await using issuer = await Issuer.open();
  issuer.lifetimeSeconds = 1;
  using folder = temporaryFolder();
  await using upload = await uploading(withToken(service, folder, issuer));
  const begun = performance.now();
  // Runs until there is a second token, because a busy machine may store few points in a second.
  for (let i = 0; issuer.forms.length < 2 || performance.now() - begun < 1_500; i++) {
    upload.reader.append({ a: [[1e15 + i, i]] });
    await eventually(() => upload.reader.empty);
  }
  // Each token is used for nine tenths of its lifetime of one second.
  expect(issuer.forms.length).toBeLessThanOrEqual(2 + (performance.now() - begun) / 900);
  expect(upload.uploader.status().requests.failed).toBe(0);
});

test("a token that the service no longer accepts is renewed once, and the request is sent again", async () => {
  await using service = await ScriptedService.open();
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  service.otherwise = only("token-2");
  await using upload = await uploading(withToken(service, folder, issuer));
  upload.reader.append({ a: [[1e15, 1]] });
  // The first token is new. The service gets 5 s to accept it, then the uploader renews it.
  await eventually(() => upload.reader.empty);
  expect(sentWith(service).at(-1)).toBe("Bearer token-2");
  expect(issuer.forms.length).toBe(2);
  service.otherwise = only("token-3");
  await new Promise((resolve) => setTimeout(resolve, 50));
  upload.reader.append({ a: [[1e15 + 1, 1]] });
  const before = service.requests(insert).length;
  await eventually(() => upload.reader.empty);
  expect([issuer.forms.length, service.requests(insert).length - before]).toEqual([3, 2]);
});

test("a service that refuses every token does not cause repeated token requests", async () => {
  await using service = await ScriptedService.open();
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  service.otherwise = answers(401);
  await using upload = await uploading(withToken(service, folder, issuer));
  upload.reader.append({ a: [[1e15, 1]] });
  const begun = performance.now();
  await eventually(() => service.requests(insert).length >= 8);
  // At most one token request in 5 s.
  expect(issuer.forms.length).toBeLessThanOrEqual(1 + ((performance.now() - begun) * 200) / 5_000);
  // The state is briefly another one between a renewed token and the next answer.
  await eventually(() => upload.uploader.status().state === "holding");
});

test("with a refusing issuer the points are kept and the refusal is reported; a failing issuer is retried", async () => {
  await using service = await ScriptedService.open();
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  issuer.status = 401;
  await using upload = await uploading(withToken(service, folder, issuer));
  upload.reader.append({ a: [[1e15, 1]] });
  await eventually(() => upload.uploader.status().state === "holding");
  expect(upload.uploader.status().lastError?.message).toContain("gives no token: HTTP 401");
  issuer.status = 503;
  await eventually(() => upload.uploader.status().state === "unreachable");
  issuer.status = 200;
  await eventually(() => upload.reader.empty);
  expect(service.requests(insert).length).toBe(1);
});

test("a changed credentials file is read again, also one that was missing", async () => {
  await using service = await ScriptedService.open();
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  const options = withToken(service, folder, issuer);
  writeFileSync(folder.file("credentials.json"), "{ not json");
  await using upload = await uploading(options);
  upload.reader.append({ a: [[1e15, 1]] });
  await eventually(() => upload.uploader.status().state === "holding");
  expect(upload.uploader.status().lastError?.message).toContain("credentials.json: is not JSON");
  credentials(folder, service.url, { type: "basic-auth", clientId: "user", clientSecret: "" });
  const incomplete = "credentials.json: credentials.clientSecret is missing or not as the service writes it";
  await eventually(() => upload.uploader.status().lastError?.message.includes(incomplete));
  credentials(folder, service.url);
  await eventually(() => upload.reader.empty);
  credentials(folder, service.url, { type: "basic-auth", clientId: "user", clientSecret: "word" });
  utimesSync(folder.file("credentials.json"), 1, 1);
  upload.reader.append({ a: [[1e15 + 1, 1]] });
  await eventually(() => upload.reader.empty);
  expect(sentWith(service).at(-1)).toBe(`Basic ${Buffer.from("user:word").toString("base64")}`);
});

test("a credentials file for another integration is not used", async () => {
  await using service = await ScriptedService.open();
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  const options = withToken(service, folder, issuer);
  await using upload = await uploading({
    ...options,
    service: { ...options.service, integration: "c8ktonqsahsmemfs7lvg" },
  });
  upload.reader.append({ a: [[1e15, 1]] });
  await eventually(() => upload.uploader.status().state === "holding");
  expect(issuer.forms.length).toBe(0);
});

test("neither secret nor token is logged or shown", async () => {
  await using service = await ScriptedService.open();
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  service.otherwise = answers(401, "no");
  {
    await using upload = await uploading(withToken(service, folder, issuer));
    upload.reader.append({ a: [[1e15, 1]] });
    await eventually(() => service.requests(insert).length >= 3);
    const shown = JSON.stringify([upload.uploader.status(), upload.runtime.lines]);
    expect(shown).not.toContain(secret);
    expect(shown).not.toContain("token-1");
  }
  // After the uploader has stopped, because a temporary file could disappear during the listing.
  const entries = readdirSync(folder.file("upload"), { recursive: true, withFileTypes: true });
  for (const { name, parentPath } of entries.filter((entry) => entry.isFile() && entry.name !== "token.json"))
    expect(readFileSync(join(parentPath, name), "utf8")).not.toContain("token-");
});

test("exactly one kind of credentials must be configured", () => {
  const parse = (auth: unknown) => serviceOptions.safeParse({ url: "http://a/v1", integration, auth }).success;
  const basic = { password: "x" };
  const clientCredentials = { file: "x" };
  expect([{}, { basic }, { clientCredentials }, { basic, clientCredentials }].map(parse)).toEqual([
    false,
    true,
    true,
    false,
  ]);
});

function serviceSecret() {
  return serviceOptions.parse({ url: "http://a/v1", integration, auth: { basic: { password: secret } } }).auth.basic!
    .password;
}
