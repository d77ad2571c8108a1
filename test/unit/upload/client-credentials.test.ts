// Tokens: one request for all waiting callers, kept for the next start, and never those of other credentials.
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { clientCredentials } from "../../../src/upload/client/credentials.ts";
import { eventually } from "../../support/eventually.ts";
import { expectMode } from "../../support/platform.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { type TemporaryFolder, temporaryFolder } from "../../support/temporary-folder.ts";

const integration = "c8ktonqsahsmemfs7lv0";
const { signal } = new AbortController();

/** Issues `token-1`, `token-2` …, each when `gate` opens. */
class Issuer implements AsyncDisposable {
  asked = 0;
  /** Answers wait for this promise. */
  gate: Promise<void> = Promise.resolve();
  status = 200;
  lifetimeSeconds = 3_600;
  /** Precedes each answer. */
  mark = "";
  readonly #server = createServer(async (_, response) => {
    const token = { access_token: `token-${++this.asked}`, expires_in: this.lifetimeSeconds, token_type: "Bearer" };
    await this.gate;
    response.writeHead(this.status).end(this.mark + JSON.stringify(token));
  });

  static async open(): Promise<Issuer> {
    const issuer = new Issuer();
    await new Promise<void>((resolve) => issuer.#server.listen(0, "127.0.0.1", resolve));
    return issuer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/`; // bound to a TCP port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function write(folder: TemporaryFolder, apiUrl: string, clientId = "client", type = "client-credentials"): string {
  const file = folder.file("credentials.json");
  // Newer files have additional members, which are ignored.
  const newer = { name: "gateway", createdAt: "2026-01-01T00:00:00Z" };
  writeFileSync(
    file,
    JSON.stringify({ apiUrl, integration, credentials: { type, clientId, clientSecret: "s", ...newer } }),
  );
  return file;
}

function open(folder: TemporaryFolder, file: string, clock = new ManualClock()): ReturnType<typeof clientCredentials> {
  const options = { file, integration, tokenPath: folder.file("token.json") };
  return clientCredentials(options, testRuntime({ clock }));
}

test("concurrent callers share one token request, and a caller that aborts does not end it", async () => {
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  await using credentials = await open(folder, write(folder, issuer.url));
  const gate = Promise.withResolvers<void>();
  issuer.gate = gate.promise;
  const impatient = new AbortController();
  const gone = credentials.authorization(impatient.signal);
  const waiting = Array.from({ length: 10 }, () => credentials.authorization(signal));
  impatient.abort(new Error("enough"));
  await expect(gone).rejects.toThrow("enough");
  gate.resolve();
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(["Bearer token-1"]));
  expect(issuer.asked).toBe(1);
});

test("a token that comes with a byte order mark, or with another status of success, is used", async () => {
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  issuer.mark = "\uFEFF";
  issuer.status = 201;
  await using credentials = await open(folder, write(folder, issuer.url));
  expect(await credentials.authorization(signal)).toBe("Bearer token-1");
});

test("a token is kept for the next start, readable by its owner only, until shortly before it expires", async () => {
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  const file = write(folder, issuer.url);
  const clock = new ManualClock();
  {
    await using credentials = await open(folder, file, clock);
    await credentials.authorization(signal);
  }
  expectMode(folder.file("token.json"), 0o600);
  await using again = await open(folder, file, clock);
  await clock.advance(3_290_000);
  expect(await again.authorization(signal)).toBe("Bearer token-1");
  await clock.advance(20_000);
  expect(await again.authorization(signal)).toBe("Bearer token-2");
});

test("a token that lives for two seconds is renewed before it ends", async () => {
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  issuer.lifetimeSeconds = 2;
  const clock = new ManualClock();
  await using credentials = await open(folder, write(folder, issuer.url), clock);
  for (const token of ["token-1", "token-2", "token-3"]) {
    expect(await credentials.authorization(signal)).toBe(`Bearer ${token}`);
    await clock.advance(1_900);
  }
});

test("while the issuer does not answer, a token that is still valid is used after a second", async () => {
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  const clock = new ManualClock();
  await using credentials = await open(folder, write(folder, issuer.url), clock);
  await credentials.authorization(signal);
  await clock.advance(3_310_000);
  const gate = Promise.withResolvers<void>();
  issuer.gate = gate.promise;
  const waiting = credentials.authorization(signal);
  await eventually(() => issuer.asked === 2);
  await clock.advance(1_000);
  expect(await waiting).toBe("Bearer token-1");
  gate.resolve();
  await eventually(async () => (await credentials.authorization(signal)) === "Bearer token-2");
});

test("an unusable token is fetched again: damaged, another client's, from the future", async () => {
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  const tokenOf = async (clientId: string, start?: string) => {
    await using credentials = await open(folder, write(folder, issuer.url, clientId), new ManualClock(start));
    return await credentials.authorization(signal);
  };
  expect(await tokenOf("client")).toBe("Bearer token-1");
  expect(await tokenOf("client")).toBe("Bearer token-1");
  writeFileSync(folder.file("token.json"), "{ damaged");
  expect(await tokenOf("client")).toBe("Bearer token-2");
  expect(await tokenOf("another")).toBe("Bearer token-3");
  // The clock was set back.
  expect(await tokenOf("another", "2025-12-31T00:00:00Z")).toBe("Bearer token-4");
});

test("both kinds of credentials file are read, also when one replaces the other", async () => {
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  await using credentials = await open(folder, write(folder, issuer.url));
  expect(await credentials.authorization(signal)).toBe("Bearer token-1");
  write(folder, issuer.url, "another-user", "basic-auth");
  const basic = `Basic ${Buffer.from("another-user:s").toString("base64")}`;
  expect(await credentials.authorization(signal)).toBe(basic);
  expect(issuer.asked).toBe(1);
});

test("a token is renewed when it is invalid, and for new grants when it is older than ten minutes, then twenty", async () => {
  await using issuer = await Issuer.open();
  using folder = temporaryFolder();
  const clock = new ManualClock();
  await using credentials = await open(folder, write(folder, issuer.url), clock);
  const first = await credentials.authorization(signal);
  await clock.advance(599_000);
  expect(credentials.renew(first, "rights")).toBe(false);
  expect(await credentials.authorization(signal)).toBe(first);
  await clock.advance(1_000);
  expect(credentials.renew(first, "rights")).toBe(true);
  const second = await credentials.authorization(signal);
  // Already renewed for another call.
  expect([second, credentials.renew(first, "rights"), credentials.renew(first, "validity")]).toEqual([
    "Bearer token-2",
    true,
    true,
  ]);
  await clock.advance(1_199_000);
  expect(credentials.renew(second, "rights")).toBe(false);
  expect(credentials.renew(second, "validity")).toBe(true);
  expect([await credentials.authorization(signal), issuer.asked]).toEqual(["Bearer token-3", 3]);
});
