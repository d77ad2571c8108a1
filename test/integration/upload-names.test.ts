// F19: the name of the service resolves to another address, or does not resolve, while connections are open.
import type { LookupAddress } from "node:dns";
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { authority, type Certified } from "../support/certificate.ts";
import { eventually } from "../support/eventually.ts";
import { has } from "../support/platform.ts";
import { ScriptedService } from "../support/scripted-service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { type Uploading, uploading } from "../support/uploading.ts";

const name = "service.plant.example";
const at = (address: string): LookupAddress => ({ address, family: 4 });
const unknown = () => Promise.reject(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: "ENOTFOUND" }));

/** Appends a point each time all earlier ones have arrived, until `condition` holds. Returns how many. */
async function sendUntil({ reader }: Uploading, condition: () => boolean, first = 0): Promise<number> {
  let next = first;
  await eventually(() => {
    if (condition()) return true;
    if (reader.empty) reader.append({ a: [[1e15 + next * 1e6, next++]] });
    return false;
  }, 20_000);
  await eventually(() => reader.empty);
  return next;
}

test.runIf(has.loopbackAddresses).for(["http", "https"])(
  "a service that moves to another address is followed, though its old one still answers (%s)",
  async (protocol) => {
    using folder = temporaryFolder();
    const caFile = folder.file("ca.pem");
    let tls: Certified | undefined;
    if (protocol === "https") {
      const { cert, issue } = authority();
      writeFileSync(caFile, cert);
      tls = issue({ names: [name] });
    }
    await using before = await ScriptedService.open(tls);
    await using after = await ScriptedService.open(tls, before.port, "127.0.0.2");
    let address = "127.0.0.1";
    await using upload = await uploading({
      url: `${protocol}://${name}:${before.port}/v1`,
      speed: 500,
      service: tls ? { caFile } : {},
      resolve: async () => [at(address)],
    });
    let points = await sendUntil(upload, () => before.stored.size >= 3);
    expect(after.seen.length).toBe(0);
    address = "127.0.0.2";
    points = await sendUntil(upload, () => after.stored.size >= 3, points);
    // The change happens between two requests, without an error, and is permanent.
    expect(upload.uploader.status().requests.failed).toBe(0);
    expect([before.stored.size + after.stored.size, before.repeated, after.repeated]).toEqual([points, 0, 0]);
    // Connections are reused for a minute at most.
    const moved = upload.departures[before.seen.length]?.at ?? Number.NaN;
    const opened = upload.departures[0]?.at ?? Number.NaN;
    expect(moved - opened).toBeGreaterThanOrEqual(60_000);
  },
);

test.runIf(has.loopbackAddresses)(
  "a service that moved to another machine is found at the new address of its name",
  async () => {
    let port = 0;
    let address = "127.0.0.1";
    const resolve = async () => [at(address)];
    await using first = await ScriptedService.open();
    port = first.port;
    await using upload = await uploading({ url: `http://${name}:${port}/v1`, speed: 500, resolve });
    const points = await sendUntil(upload, () => first.stored.size >= 2);
    await first[Symbol.asyncDispose]();
    await using second = await ScriptedService.open(undefined, port, "127.0.0.2");
    upload.reader.append({ a: [[1e15 + points * 1e6, points]] });
    await eventually(() => upload.uploader.status().requests.failed > 0);
    expect(second.seen.length).toBe(0);
    address = "127.0.0.2";
    await eventually(() => upload.reader.empty);
    expect(second.stored.size).toBe(1);
  },
);

test("while a name cannot be looked up open connections continue, and new ones wait for it", async () => {
  await using service = await ScriptedService.open();
  let found = false;
  let asked = 0;
  await using upload = await uploading({
    url: `http://${name}:${service.port}/v1`,
    speed: 500,
    resolve: () => {
      asked++;
      return found ? Promise.resolve([at("127.0.0.1")]) : unknown();
    },
  });
  upload.reader.append({ a: [[1e15, 0]] });
  const status = await eventually(() => {
    const now = upload.uploader.status();
    return now.requests.failed >= 3 && now;
  });
  expect(status).toMatchObject({
    state: "unreachable",
    lastError: { code: "SERVICE_UNREACHABLE", message: expect.stringContaining(`ENOTFOUND ${name}`) },
  });
  found = true;
  await eventually(() => upload.reader.empty);
  found = false;
  const { failed } = upload.uploader.status().requests;
  const before = asked;
  const points = await sendUntil(upload, () => asked >= before + 2, 1);
  expect([upload.uploader.status().requests.failed, service.stored.size]).toEqual([failed, points]);
});

test.runIf(has.loopbackAddresses)("the answering one of several addresses is used", async () => {
  await using service = await ScriptedService.open();
  await using upload = await uploading({
    url: `http://${name}:${service.port}/v1`,
    speed: 500,
    resolve: async () => [{ address: "::1", family: 6 }, at("127.0.0.3"), at("127.0.0.1")],
  });
  const points = await sendUntil(upload, () => service.stored.size >= 2);
  expect([service.stored.size, upload.uploader.status().rejected]).toEqual([points, 0]);
});
