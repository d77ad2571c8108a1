// The uploader sends nothing to a service whose certificate it cannot verify.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { InputId } from "../../src/core/point.ts";
import { authority, dayMs } from "../support/certificate.ts";
import { eventually } from "../support/eventually.ts";
import { ScriptedService } from "../support/scripted-service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { uploading } from "../support/uploading.ts";

const fixture = (name: string) => join(import.meta.dirname, "../fixtures/tls", name);
const certified = (name: string) => ({
  key: readFileSync(fixture(`${name}-key.pem`)),
  cert: readFileSync(fixture(`${name}.pem`)),
});

test("a service with an authority in caFile gets the points", async () => {
  await using service = await ScriptedService.open(certified("broker"));
  await using upload = await uploading({ url: service.url, speed: 200, service: { caFile: fixture("ca.pem") } });
  upload.reader.append({ a: [[1e15, 1]] });
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(1);
});

test.for([
  ["of an unknown authority", "broker", {}],
  ["for another name", "other-name", { caFile: fixture("ca.pem") }],
] as const)("a service with a certificate %s is sent nothing, and the points stay", async ([, name, options]) => {
  await using service = await ScriptedService.open(certified(name));
  await using upload = await uploading({ url: service.url, speed: 200, service: options });
  upload.reader.append({ a: [[1e15, 1]] });
  const status = await eventually(() => {
    const now = upload.uploader.status();
    return now.requests.failed >= 2 && now;
  });
  expect(status).toMatchObject({ state: "unreachable", lastError: { code: "SERVICE_UNTRUSTED", current: true } });
  expect(status.lastError?.message).toMatch(/name that in service\.caFile|is service\.url right/);
  expect([service.seen.length, upload.reader.settled.length]).toEqual([0, 0]);
});

test("a service with a wrong certificate is sent nothing until it has the right one again", async () => {
  await using service = await ScriptedService.open(certified("broker"));
  await using upload = await uploading({ url: service.url, speed: 200, service: { caFile: fixture("ca.pem") } });
  upload.reader.append({ a: [[1e15, 1]] });
  await eventually(() => upload.reader.empty);
  service.certify(certified("other-name"));
  upload.reader.append({ a: [[1e15 + 1e6, 2]] });
  await eventually(() => upload.uploader.status().lastError?.message.includes("altname") ?? false);
  expect([service.seen.length, upload.reader.empty]).toEqual([1, false]);
  service.certify(certified("broker"));
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(2);
});

test.for([
  ["has expired", "its certificate has expired: it must be renewed", { from: -2 * dayMs, to: -dayMs }],
  ["is not valid yet", "its certificate is not valid yet: is the clock here right?", { from: dayMs, to: 2 * dayMs }],
] as const)(
  "a certificate that %s is reported as such, and the one that replaces it is accepted",
  async ([, message, time]) => {
    using folder = temporaryFolder();
    const { cert, issue } = authority();
    const caFile = folder.file("ca.pem");
    writeFileSync(caFile, cert);
    const right = issue({ names: ["localhost"] });
    await using service = await ScriptedService.open(right);
    await using upload = await uploading({ url: service.url, speed: 200, service: { caFile } });
    upload.reader.append({ a: [[1e15, 1]] });
    await eventually(() => upload.reader.empty);
    const requestsBefore = service.seen.length;
    service.certify(issue({ names: ["localhost"], ...time }));
    upload.catalog.describe("b" as InputId, { engUnit: "V" });
    upload.reader.append({ a: [[1e15 + 1e6, 2]], b: [[1e15, 3]] });
    const status = await eventually(() => {
      const now = upload.uploader.status();
      return now.requests.failed >= 3 && now.lastError?.code === "SERVICE_UNTRUSTED" && now;
    });
    expect(status.lastError).toMatchObject({ current: true, message: expect.stringContaining(message) });
    expect(status.lastError?.message).toContain(`says ${new Date().toISOString().slice(0, 10)}`);
    expect(status.lastError?.hint).toContain("the clock of this machine");
    expect([service.seen.length, upload.reader.empty, upload.catalog.pending.size]).toEqual([requestsBefore, false, 1]);
    service.certify(right);
    await eventually(() => upload.reader.empty && upload.catalog.pending.size === 0);
    expect([service.stored.size, service.signals.size, upload.uploader.status().rejected]).toEqual([3, 1, 0]);
    expect(upload.uploader.status().lastError?.current).toBe(false);
  },
);

test("an authority replaced in caFile is trusted without a restart", async () => {
  using folder = temporaryFolder();
  const [before, after] = [authority(), authority()];
  const caFile = folder.file("ca.pem");
  writeFileSync(caFile, before.cert);
  await using service = await ScriptedService.open(after.issue({ names: ["localhost"] }));
  await using upload = await uploading({ url: service.url, speed: 200, service: { caFile } });
  upload.reader.append({ a: [[1e15, 1]] });
  await eventually(() => upload.uploader.status().lastError?.code === "SERVICE_UNTRUSTED");
  writeFileSync(caFile, after.cert);
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(1);
});

test("a service with TLS 1.1 only is sent nothing, and the points are kept", async () => {
  const old = { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
  await using service = await ScriptedService.open({ ...certified("broker"), ...old });
  await using upload = await uploading({ url: service.url, speed: 200, service: { caFile: fixture("ca.pem") } });
  upload.reader.append({ a: [[1e15, 1]] });
  const status = await eventually(() => {
    const now = upload.uploader.status();
    return now.requests.failed >= 2 && now;
  });
  expect(status.lastError?.message).toMatch(/version|protocol/i);
  expect([service.seen.length, upload.reader.settled.length]).toEqual([0, 0]);
});

test("Node's variable for accepting every certificate has no effect", async () => {
  const before = process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  try {
    await using service = await ScriptedService.open(certified("broker"));
    await using upload = await uploading({ url: service.url, speed: 200 });
    upload.reader.append({ a: [[1e15, 1]] });
    await eventually(() => upload.uploader.status().lastError?.message.includes("certificate") ?? false);
    expect([service.seen.length, upload.reader.settled.length]).toEqual([0, 0]);
  } finally {
    if (before === undefined) delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    else process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = before;
  }
});
