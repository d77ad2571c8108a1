import { readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { Secret } from "../../src/core/secret.ts";
import { TokenSigner } from "../../src/service/http/credentials.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { basic, integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const integrations = [
  {
    id: integration,
    password: new Secret(password),
    clientId: "client+1",
    clientSecret: new Secret("s&cr=t"),
    grants: [],
  },
];
// For all tests that need no clock or disk of their own.
const service = await testService({ integrations });
afterAll(() => service[Symbol.asyncDispose]());
const params = { integration, data: { times: [], series: {} } };

function form(url: string, fields: Readonly<Record<string, string>> = {}) {
  return {
    grant_type: "client_credentials",
    client_id: "client+1",
    client_secret: "s&cr=t",
    audience: `${url}/`,
    ...fields,
  };
}

async function token(
  url: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
) {
  const reply = await fetch(`${url}/oauth/token`, { method: "POST", headers, body: new URLSearchParams(fields) });
  return { status: reply.status, headers: reply.headers, body: (await reply.json()) as Record<string, unknown> };
}

const bearer = (body: Record<string, unknown>) => ({
  headers: { authorization: `Bearer ${String(body["access_token"])}` },
});

test("client credentials give a token that is valid for calls until it expires", async () => {
  const clock = new ManualClock();
  await using service = await testService({ integrations }, testRuntime({ clock }));
  const { status, body } = await token(service.url, form(service.url));
  expect(status).toBe(200);
  expect(body).toEqual({
    access_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
    scope: "invoke:integration",
    expires_in: 7_200,
    token_type: "Bearer",
  });
  expect((await service.call("integration.insert", params, bearer(body))).body?.result).toEqual({ signalsByInput: {} });
  clock.stepWall(7_199_000);
  expect((await service.call("integration.insert", params, bearer(body))).status).toBe(200);
  clock.stepWall(1_000);
  const expired = await service.call("integration.insert", params, bearer(body));
  expect(expired.status).toBe(401);
  expect(expired.body).toEqual({ error: "access_denied", error_description: "Unauthorized" });
});

test("the middle part of a token is JSON in base64, as a public client requires", async () => {
  const { body } = await token(service.url, form(service.url));
  const claims = JSON.parse(Buffer.from(String(body["access_token"]).split(".")[1] ?? "", "base64").toString());
  expect(claims).toMatchObject({
    aud: `${service.url}/`,
    azp: "client+1",
    sub: "client+1@clients",
    gty: "client-credentials",
  });
  expect(claims.exp - claims.iat).toBe(7_200);
});

test("the client may be in an HTTP Basic header instead of the form", async () => {
  const fields = { grant_type: "client_credentials", audience: `${service.url}/` };
  const authorization = basic(encodeURIComponent("client+1"), encodeURIComponent("s&cr=t"));
  expect((await token(service.url, fields, { authorization })).status).toBe(200);
});

test("the audience may be written without its slash, or with another name of this machine", async () => {
  for (const audience of [service.url, service.url.replace("127.0.0.1", "localhost")]) {
    const { status, body } = await token(service.url, form(service.url, { audience }));
    expect(status).toBe(200);
    expect((await service.call("integration.insert", params, bearer(body))).status).toBe(200);
  }
});

test.each([
  [{ client_secret: "wrong" }, 401],
  [{ client_id: "nobody" }, 401],
  [{ audience: "http://elsewhere.example/v1/" }, 401],
  [{ audience: "" }, 401],
  [{ grant_type: "password" }, 400],
])("a token request with %j is answered %i with the two members clients need", async (fields, status) => {
  const reply = await token(service.url, form(service.url, fields));
  expect(reply.status).toBe(status);
  expect(Object.keys(reply.body)).toEqual(["error", "error_description"]);
  if (status === 401) expect(reply.body).toEqual({ error: "access_denied", error_description: "Unauthorized" });
});

test("a token of another service, or changed by one character, is refused", async () => {
  await using other = await testService({ integrations });
  const { body } = await token(other.url, form(other.url));
  expect((await service.call("integration.insert", params, bearer(body))).status).toBe(401);
  const own = String((await token(service.url, form(service.url))).body["access_token"]);
  const [head = "", claims = "", signature = ""] = own.split(".");
  const forged = JSON.parse(Buffer.from(claims, "base64url").toString());
  const changed = Buffer.from(JSON.stringify({ ...forged, exp: forged.exp + 1 })).toString("base64url");
  const none = Buffer.from(JSON.stringify({ alg: "none", typ: "JWT" })).toString("base64url");
  for (const text of [
    `${head}.${changed}.${signature}`,
    `${none}.${claims}.`,
    `${none}.${claims}.${signature}`,
    `${own}x`,
    "x",
  ])
    expect((await service.call("integration.insert", params, bearer({ access_token: text }))).status).toBe(401);
});

test("a validly signed token is refused for another audience, an unknown client, or after it expired", async () => {
  using folder = temporaryFolder();
  await using kept = await testService({ integrations, data: folder.path });
  const signer = new TokenSigner(readFileSync(folder.file("token.key")));
  const now = Math.floor(Date.now() / 1_000);
  const claims = { integration, clientId: "client+1", audience: `${kept.url}/`, expiresAt: now + 60 };
  const status = async (changes: object) =>
    (
      await kept.call(
        "integration.insert",
        params,
        bearer({ access_token: signer.sign({ ...claims, ...changes }, now) }),
      )
    ).status;
  expect(await status({})).toBe(200);
  expect(await status({ audience: "http://gateway.example/v1/" })).toBe(401);
  expect(await status({ audience: kept.url.replace("/v1", "/v2/") })).toBe(401);
  expect(await status({ clientId: "client" })).toBe(401);
  expect(await status({ expiresAt: now - 1 })).toBe(401);
});

test("tokens outlive a restart of the service, because the key is kept with the data", async () => {
  using folder = temporaryFolder();
  let issued: Record<string, unknown>;
  let port: number;
  {
    await using service = await testService({ integrations, data: folder.path });
    port = Number(new URL(service.url).port);
    issued = (await token(service.url, form(service.url))).body;
  }
  await using service = await testService({ integrations, data: folder.path, listen: { host: "127.0.0.1", port } });
  expect((await service.call("integration.insert", params, bearer(issued))).status).toBe(200);
});

test("token requests are limited to 20 a minute", async () => {
  const clock = new ManualClock();
  await using service = await testService({ integrations, throttle: "queue" }, testRuntime({ clock }));
  const statuses: number[] = [];
  for (let i = 0; i < 21; i++) statuses.push((await token(service.url, form(service.url))).status);
  expect(statuses).toEqual([...Array.from({ length: 20 }, () => 200), 429]);
  const refused = await token(service.url, form(service.url));
  expect(refused.headers.get("retry-after")).toBe("60");
  await clock.advance(60_000);
  expect((await token(service.url, form(service.url))).status).toBe(200);
});
