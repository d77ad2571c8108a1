// Delivery through a proxy, where the network allows no direct connection.

import { writeFileSync } from "node:fs";
import { createServer, request as send } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, test } from "vitest";
import { authority } from "../support/certificate.ts";
import { eventually } from "../support/eventually.ts";
import { ScriptedService } from "../support/scripted-service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { uploading } from "../support/uploading.ts";

/** Forwards requests and opens tunnels, and counts both. Answers 407 while `closed`. */
class Proxy implements AsyncDisposable {
  forwarded = 0;
  tunnels = 0;
  closed = false;
  readonly #server = createServer((incoming, response) => {
    this.forwarded++;
    if (this.closed) {
      response.writeHead(407).end();
      return;
    }
    const { method, headers, url } = incoming;
    const outgoing = send(url ?? "", { method: method ?? "POST", headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(outgoing);
  });

  static async open(): Promise<Proxy> {
    const proxy = new Proxy();
    proxy.#server.on("connect", ({ url = "" }, client) => {
      proxy.tunnels++;
      if (proxy.closed) {
        client.end("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n");
        return;
      }
      const [host = "", port = ""] = url.split(":");
      const server = connect(Number(port), host, () => {
        client.write("HTTP/1.1 200 OK\r\n\r\n");
        server.pipe(client).pipe(server);
      });
      server.on("error", () => client.destroy());
      client.on("error", () => server.destroy());
    });
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`; // bound to a TCP port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

test("every request goes through the proxy; if it requires a password the points are kept", async () => {
  await using service = await ScriptedService.open();
  await using proxy = await Proxy.open();
  proxy.closed = true;
  await using upload = await uploading({ url: service.url, speed: 200, service: { proxy: proxy.url } });
  upload.reader.append({ a: [[1e15, 1]] });
  await eventually(() => proxy.forwarded + proxy.tunnels >= 2);
  expect([service.seen.length, upload.reader.settled.length]).toEqual([0, 0]);
  expect(upload.uploader.status().lastError?.current).toBe(true);
  proxy.closed = false;
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(1);
});

test("a service with TLS is reached through a tunnel; if the proxy requires a password the points are kept", async () => {
  using folder = temporaryFolder();
  const { cert, issue } = authority();
  const caFile = folder.file("ca.pem");
  writeFileSync(caFile, cert);
  await using service = await ScriptedService.open(issue({ names: ["localhost"] }));
  await using proxy = await Proxy.open();
  proxy.closed = true;
  await using upload = await uploading({ url: service.url, speed: 200, service: { proxy: proxy.url, caFile } });
  upload.reader.append({ a: [[1e15, 1]] });
  await eventually(() => proxy.tunnels >= 2);
  expect(upload.uploader.status()).toMatchObject({
    state: "holding",
    lastError: { message: expect.stringContaining("407"), current: true },
  });
  proxy.closed = false;
  await eventually(() => upload.reader.empty);
  service.certify(issue({ names: ["other"] }));
  upload.reader.append({ a: [[1e15 + 1e6, 2]] });
  await eventually(() => upload.uploader.status().lastError?.code === "SERVICE_UNTRUSTED");
  expect([service.stored.size, proxy.forwarded]).toEqual([1, 0]);
});
