import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { basic, integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const data = { include: true, notBefore: "2026-01-01T00:00:00Z", before: "2026-01-05T00:00:00Z" };

test("unread large answers take a bounded amount of memory, and small ones are sent meanwhile", async () => {
  using folder = temporaryFolder();
  await using service = await testService({ data: folder.path });
  const times = Array.from({ length: 20_000 }, (_, i) => new Date(Date.UTC(2026, 0, 1) + i * 1_000).toISOString());
  // Values of 18 characters make an answer of 18 MB.
  const series = Object.fromEntries(
    Array.from({ length: 50 }, (_, s) => [`s${s}`, times.map((_, i) => 0.1 + (i * 50 + s) / 3e7)]),
  );
  for (const input of Object.keys(series))
    await service.call("integration.insert", { integration, data: { times, series: { [input]: series[input] } } });
  const { body } = await service.call("admin.selectSignals", { integration, signals: { include: true, limit: 50 } });
  const view = { name: "s", type: "numeric", sourceType: "measurement" };
  const itemsBySignal = Object.fromEntries(Object.keys(body?.result?.["signals"]).map((id) => [id, view]));
  await service.call("admin.publishSignals", { integration, itemsBySignal });

  const params = { items: { limit: 50 }, data };
  const unread: IncomingMessage[] = [];
  let status = 0;
  while (unread.length < 12 && status !== 503) {
    const response = await begin(service.url, params);
    status = response.statusCode ?? 0;
    if (status === 200) unread.push(response);
  }
  expect(status).toBe(503);
  expect(unread.length).toBeGreaterThan(2);
  expect((await service.call("platform.selectItems", { items: { include: true, limit: 50 } })).status).toBe(200);

  for (const response of unread) response.destroy();
  const large = await service.call("platform.selectItems", params);
  expect([large.status, large.body?.result?.["data"].times.length]).toEqual([200, 20_000]);

  // Clients that disconnect before their request is unpacked do not count either.
  await Promise.all(Array.from({ length: 12 }, () => askAndLeave(service.url, params)));
  const after: number[] = [];
  // The second call waits until the abandoned requests have run.
  while (after.length < 2) after.push((await service.call("platform.selectItems", params)).status);
  expect(after).toEqual([200, 200]);
});

/**
 * Sends a request that takes long to unpack, and ends its side of the connection. Resolves when the service has closed
 * the connection as well.
 */
async function askAndLeave(url: string, params: object): Promise<void> {
  const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "platform.selectItems", params });
  const body = gzipSync(`${text.slice(0, -1)}${" ".repeat(7e6)}}`);
  const { hostname, port, pathname } = new URL(`${url}/rpc`);
  const socket = connect(Number(port), hostname).resume();
  socket.write(
    [
      `POST ${pathname} HTTP/1.1`,
      `host: ${hostname}`,
      "content-type: application/json",
      "content-encoding: gzip",
      `content-length: ${body.length}`,
      "x-api-version: 1.1beta1",
      `authorization: ${basic(integration, password)}`,
      "\r\n",
    ].join("\r\n"),
  );
  socket.end(body);
  await once(socket, "close");
}

/** Resolves with the headers of the answer. The body stays unread. */
async function begin(url: string, params: object): Promise<IncomingMessage> {
  const sent = request(`${url}/rpc`, {
    method: "POST",
    agent: false,
    headers: {
      "content-type": "application/json",
      "x-api-version": "1.1beta1",
      authorization: basic(integration, password),
    },
  });
  sent.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "platform.selectItems", params }));
  const [response]: IncomingMessage[] = await once(sent, "response");
  if (!response) throw new Error("no answer");
  return response;
}
