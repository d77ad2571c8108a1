// The byte counts that status shows equal what went over the connection, for metered connections.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { accepts, ScriptedService } from "../support/scripted-service.ts";
import { tcpProxy } from "../support/tcp-proxy.ts";
import { uploading } from "../support/uploading.ts";

const fixture = (name: string) => join(import.meta.dirname, "../fixtures/tls", name);
const certified = { key: readFileSync(fixture("broker-key.pem")), cert: readFileSync(fixture("broker.pem")) };

test.for([
  ["without TLS", undefined, {}],
  ["with TLS", certified, { caFile: fixture("ca.pem") }],
] as const)("%s every byte of the connection is counted", async ([, identity, service]) => {
  await using server = await ScriptedService.open(identity);
  await using line = await tcpProxy(Number(new URL(server.url).port));
  const url = server.url.replace(/:\d+/, `:${line.port}`);
  await using upload = await uploading({ url, speed: 200, service });
  for (let i = 0; i < 3; i++) {
    upload.reader.append({ a: [[1e15 + i * 1e6, i]] });
    await eventually(() => upload.reader.empty);
  }

  const { up, down } = line.carried;
  expect(up).toBeGreaterThan(1_000);
  expect(upload.uploader.status().traffic).toMatchObject({ sentBytes: up, receivedBytes: down });
  expect(upload.runtime.metric("upload_network_bytes_total", { direction: "sent" })).toBe(up);
  expect(upload.runtime.metric("upload_network_bytes_total", { direction: "received" })).toBe(down);
});

test("a new connection resumes the TLS session of the one before, which saves its certificates", async () => {
  await using server = await ScriptedService.open(certified);
  await using line = await tcpProxy(Number(new URL(server.url).port));
  const url = server.url.replace(/:\d+/, `:${line.port}`);
  await using upload = await uploading({
    url,
    speed: 200,
    service: { caFile: fixture("ca.pem"), signals: { save: "never" } },
  });
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const received: number[] = [];
  for (let i = 0; i < 3; i++) {
    server.otherwise = (exchange) => {
      exchange.response.setHeader("connection", "close");
      return accepts(exchange);
    };
    const before = line.carried.down;
    upload.reader.append({ a: [[1e15 + i * 1e6, i]] });
    await eventually(() => upload.reader.empty && line.connections === 0);
    received.push(line.carried.down - before);
    collect();
  }
  const [first = 0, ...later] = received;
  for (const bytes of later) expect(bytes).toBeLessThan(first - 500);
});
