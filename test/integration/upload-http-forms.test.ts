// Answers that HTTP permits and that the server of Node never gives, written byte by byte.
import { createServer, type Server, type Socket } from "node:net";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { answers, ScriptedService } from "../support/scripted-service.ts";
import { closest, uploading } from "../support/uploading.ts";

/** Stores each request in `service` and answers with `form`. `closes`: ends the connection after each answer. */
function rawService(service: ScriptedService, form: (body: string) => string, closes: boolean): Server {
  return createServer((socket: Socket) => {
    let arrived = "";
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      arrived += chunk.toString("latin1");
      const head = arrived.indexOf("\r\n\r\n") + 4;
      const size = Number(/content-length: (\d+)/i.exec(arrived)?.[1]);
      if (head < 4 || arrived.length < head + size) return;
      const request = JSON.parse(arrived.slice(head));
      arrived = "";
      const body = JSON.stringify({ jsonrpc: "2.0", id: request.id, result: service.store(request) });
      if (closes) socket.end(form(body));
      else socket.write(form(body));
    });
  });
}

const ok = "HTTP/1.1 200 OK\r\n";
const sized = (body: string) => `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

test.concurrent.for<readonly [string, (body: string) => string, closes?: boolean]>([
  ["an unrequested 100 Continue", (body) => `HTTP/1.1 100 Continue\r\n\r\n${ok}${sized(body)}`],
  ["early hints", (body) => `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${ok}${sized(body)}`],
  ["HTTP/1.0", (body) => `HTTP/1.0 200 OK\r\n${sized(body)}`, true],
  ["HTTP/1.0 that ends with the connection", (body) => `HTTP/1.0 200 OK\r\n\r\n${body}`, true],
  ["HTTP/1.1 that ends with the connection", (body) => `${ok}connection: close\r\n\r\n${body}`, true],
  ["a connection that closes without notice", (body) => ok + sized(body), true],
  [
    "chunks with extensions and a trailer",
    (body) => `${ok}transfer-encoding: chunked\r\n\r\n${body.length.toString(16)};a=b\r\n${body}\r\n0\r\nc: d\r\n\r\n`,
  ],
  ["a byte order mark", (body) => ok + sized(`\uFEFF${body}`)],
  ["201 Created", (body) => `HTTP/1.1 201 Created\r\n${sized(body)}`],
  ["202 Accepted", (body) => `HTTP/1.1 202 Accepted\r\n${sized(body)}`],
  ["keep-alive for no time", (body) => `${ok}keep-alive: timeout=0, max=0\r\n${sized(body)}`],
])("after %s each point is stored, and sent once", async ([, form, closes = false], { expect }) => {
  await using service = await ScriptedService.open();
  await using server = rawService(service, form, closes);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  await using upload = await uploading({ url: `http://127.0.0.1:${port}/v1`, speed: 500 });
  for (const value of [1, 2, 3]) {
    upload.reader.append({ a: [[1e15 + value * 1e6, value]] });
    await eventually(() => upload.reader.empty);
  }
  expect([service.stored.size, service.repeated, upload.uploader.status().requests.failed]).toEqual([3, 0, 0]);
});

test.for([
  [204, "", "the answer with HTTP 204 is not JSON; does a proxy or portal answer in place of the service?"],
  [201, '{"jsonrpc":"2.0"}', "the answer with HTTP 201 is not a JSON-RPC 2.0 response"],
] as const)("HTTP %i with the body %j is an error in the status", async ([status, body, message]) => {
  await using service = await ScriptedService.open();
  service.otherwise = answers(status, body);
  await using upload = await uploading({ url: service.url, speed: 500 });
  upload.reader.append({ a: [[1e15, 1]] });
  const { lastError } = await eventually(() => {
    const now = upload.uploader.status();
    return now.requests.failed >= 2 && now;
  });
  expect(lastError).toMatchObject({ code: "SERVICE_UNREACHABLE", message, current: true });
  expect(closest(upload.departures)).toBeGreaterThanOrEqual(1_000);
});

const noon = { fixed: "Thu, 01 May 2031 12:00:00 GMT", asctime: "Thu May  1 12:00:00 2031" };

test.for([
  ["a fixed date", noon.fixed, "Thu, 01 May 2031 12:00:20 GMT"],
  ["a date of RFC 850", noon.fixed, "Thursday, 01-May-31 12:00:20 GMT"],
  ["a date of asctime", noon.fixed, "Thu May  1 12:00:20 2031"],
  ["a date, after an answer with one of asctime,", noon.asctime, "Thu, 01 May 2031 12:00:20 GMT"],
] as const)(
  "a Retry-After with %s is counted in GMT from the date of the answer, not from the clock here",
  async (row) => {
    const [, date, after] = row;
    await using service = await ScriptedService.open();
    service.script["integration.insert"]?.push(({ response }) => {
      response.writeHead(503, { date, "retry-after": after }).end();
    });
    // Both an hour by the clock here and the nine hours of this time zone take longer than this test may.
    using _zone = timeZone("Asia/Tokyo");
    await using upload = await uploading({ url: service.url, speed: 50 });
    upload.reader.append({ a: [[1e15, 1]] });
    await eventually(() => upload.reader.empty);
    expect(closest(upload.departures)).toBeGreaterThanOrEqual(20_000);
  },
);

/** Sets the time zone of the process until the end of the block. */
function timeZone(name: string): Disposable {
  const before = process.env["TZ"];
  process.env["TZ"] = name;
  return {
    [Symbol.dispose]() {
      if (before === undefined) delete process.env["TZ"];
      else process.env["TZ"] = before;
    },
  };
}
