import { writeFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { buffer } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { authority } from "../support/certificate.ts";
import { basic, integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const page = "https://dashboards.example.com";
const service = await testService({ cors: [page] });
afterAll(() => service[Symbol.asyncDispose]());
await service.call("integration.saveSignals", {
  integration,
  inputs: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`signal.${i}`, { description: "the same text" }])),
});

interface Sent {
  readonly verb?: string;
  readonly limit?: number;
  readonly ca?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends one request. Returns its answer as received. */
async function sent(url: string, { verb = "POST", limit = 50, ca, headers = {} }: Sent = {}) {
  const params = { integration, signals: { include: true, limit } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "admin.selectSignals", params });
  const own = {
    authorization: basic(integration, password),
    "content-type": "application/json",
    "x-api-version": "1.1beta1",
  };
  return new Promise<{ status: number | undefined; headers: Record<string, unknown>; body: Buffer }>(
    (resolve, reject) => {
      const options = { method: verb, headers: { ...own, ...headers } };
      const answered = async (response: IncomingMessage) =>
        resolve({ status: response.statusCode, headers: response.headers, body: await buffer(response) });
      const outgoing = url.startsWith("https:")
        ? httpsRequest(url, { ...options, ...(ca === undefined ? {} : { ca }) }, answered)
        : httpRequest(url, options, answered);
      outgoing.on("error", reject);
      outgoing.end(verb === "POST" ? body : undefined);
    },
  );
}

const rpc = `${service.url}/rpc`;
const plain = await sent(rpc);

test.each([
  ["gzip", "gzip", gunzipSync],
  ["gzip, deflate, br", "br", brotliDecompressSync],
  ["gzip, deflate, br, zstd", "zstd", zstdDecompressSync],
  ["br;q=0.5, gzip;q=0.8, zstd;q=0", "gzip", gunzipSync],
  ["*", "zstd", zstdDecompressSync],
  ["*, zstd;q=0, br; q=0", "gzip", gunzipSync],
  ["identity, gzip", "gzip", gunzipSync],
  ["identity;q=0.2, gzip;q=0.5", "gzip", gunzipSync],
])("an answer to a client that accepts %s is compressed with %s", async (accepted, coding, decompress) => {
  const { headers, body } = await sent(rpc, { headers: { "accept-encoding": accepted } });
  expect(headers["content-encoding"]).toBe(coding);
  expect(headers["content-length"]).toBe(String(body.length));
  expect(body.length).toBeLessThan(plain.body.length / 3);
  expect(decompress(body)).toEqual(plain.body);
});

test.each([undefined, "identity", "deflate", "gzip;q=0", "*;q=0", "identity, gzip;q=0.5"])(
  "an answer to a client that accepts %s is not compressed",
  async (accepted) => {
    const { headers, body } = await sent(
      rpc,
      accepted === undefined ? {} : { headers: { "accept-encoding": accepted } },
    );
    expect([headers["content-encoding"], body]).toEqual([undefined, plain.body]);
  },
);

test("a small answer is not compressed", async () => {
  const { headers } = await sent(rpc, { limit: 1, headers: { "accept-encoding": "gzip" } });
  expect(headers["content-encoding"]).toBe(undefined);
});

test("a page of a permitted origin may call, also with a preflight request", async () => {
  const asked = await sent(rpc, {
    verb: "OPTIONS",
    headers: { origin: page, "access-control-request-method": "POST", authorization: "" },
  });
  expect([asked.status, asked.headers["access-control-allow-origin"]]).toEqual([204, page]);
  expect(asked.headers["access-control-allow-methods"]).toContain("POST");
  const allowed = String(asked.headers["access-control-allow-headers"]).split(", ");
  expect(allowed).toEqual(expect.arrayContaining(["authorization", "content-type", "x-api-version"]));
  const called = await sent(rpc, { headers: { origin: page } });
  expect([called.status, called.headers["access-control-allow-origin"]]).toEqual([200, page]);
  // The headers are set on refusals as well, so that a web page can read the reason.
  const refused = await sent(rpc, { headers: { origin: page, authorization: basic(integration, "wrong") } });
  expect([refused.status, refused.headers["access-control-allow-origin"]]).toEqual([401, page]);
});

test("a page of another origin may not call", async () => {
  const preflight = { "access-control-request-method": "POST", origin: "https://other.example.com" };
  const asked = await sent(rpc, { verb: "OPTIONS", headers: preflight });
  expect([asked.status, asked.headers["access-control-allow-origin"]]).toEqual([405, undefined]);
  const called = await sent(rpc, { headers: { origin: "https://other.example.com" } });
  expect(called.headers["access-control-allow-origin"]).toBe(undefined);
});

test("with cors * any page may call, and without the option none", async () => {
  await using open = await testService({ cors: ["*"] });
  await using closed = await testService();
  const headers = { origin: page };
  expect((await sent(`${open.url}/rpc`, { headers })).headers["access-control-allow-origin"]).toBe("*");
  expect((await sent(`${closed.url}/rpc`, { headers })).headers["access-control-allow-origin"]).toBe(undefined);
});

test("with a certificate the service accepts only TLS", async () => {
  using folder = temporaryFolder();
  const issuer = authority();
  const { cert, key } = issuer.issue({ names: ["localhost"] });
  const [tlsCert, tlsKey] = [folder.file("cert.pem"), folder.file("key.pem")];
  writeFileSync(tlsCert, cert);
  writeFileSync(tlsKey, key);
  await using secure = await testService({ tlsCert, tlsKey });
  expect([secure.url, secure.pageUrl].map((url) => new URL(url).protocol)).toEqual(["https:", "https:"]);
  const url = `${secure.url.replace("127.0.0.1", "localhost")}/rpc`;
  expect((await sent(url, { ca: issuer.cert })).status).toBe(200);
  await expect(sent(url.replace("https:", "http:"))).rejects.toThrow("socket hang up");
});

test("a certificate without its key, or a key alone, does not start a service without TLS", async () => {
  for (const half of [{ tlsCert: "cert.pem" }, { tlsKey: "key.pem" }])
    await expect(testService(half).then((open) => open[Symbol.asyncDispose]())).rejects.toMatchObject({
      code: "CONFIG_INVALID",
    });
});

test("an invalid certificate, or one of another key, is reported with its files", async () => {
  using folder = temporaryFolder();
  const tlsCert = folder.file("cert.pem");
  writeFileSync(tlsCert, authority().cert);
  const tlsKey = folder.file("key.pem");
  writeFileSync(tlsKey, authority().issue({ names: ["localhost"] }).key);
  for (const key of [tlsKey, tlsCert, folder.file("absent.pem")])
    await expect(testService({ tlsCert, tlsKey: key })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining(`--tls-cert ${tlsCert} and --tls-key ${key}`),
    });
});

test("HEAD has the headers of GET, among them the length of the page, and no body", async () => {
  const [get, head] = await Promise.all(["GET", "HEAD"].map((verb) => sent(service.pageUrl, { verb })));
  const dateless = (answer: typeof get) => ({ ...answer?.headers, date: "" });
  expect(dateless(head)).toEqual(dateless(get));
  expect([Number(get?.headers["content-length"]), head?.body.length]).toEqual([get?.body.length, 0]);
});
