// Warnings about a server certificate that the operator trusts nevertheless.

import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { OPCUACertificateManager } from "node-opcua-certificate-manager";
import { beforeAll, expect, test } from "vitest";
import { certificateWarnings } from "../../../../src/source/opcua/certificates/trust.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const made = new Map<number, Uint8Array>();
beforeAll(async () => {
  for (const bits of [1_024, 2_048]) {
    using folder = temporaryFolder();
    const key = folder.file("own/private/private_key.pem");
    mkdirSync(dirname(key), { recursive: true });
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: bits });
    writeFileSync(key, privateKey.export({ type: "pkcs8", format: "pem" }));
    const store = new OPCUACertificateManager({ rootFolder: folder.path, disableFileWatchers: true });
    await store.initialize();
    const outputFile = folder.file("plc.pem");
    await store.createSelfSignedCertificate({
      applicationUri: "urn:plc:line3",
      dns: ["plc3"],
      ip: ["10.0.3.5"],
      outputFile,
      subject: "/CN=plc3",
      startDate: new Date(),
      validity: 10,
    });
    await store.dispose();
    made.set(bits, new X509Certificate(readFileSync(outputFile)).raw);
  }
});
const warnings = (bits: number, applicationUri: string | null, url: string) =>
  certificateWarnings(made.get(bits) ?? new Uint8Array(), url, applicationUri);

test("a certificate with the right application and host and a long key gives no warning", () => {
  for (const host of ["plc3", "PLC3", "10.0.3.5"])
    expect(warnings(2_048, "urn:plc:line3", `opc.tcp://${host}:4840/path`)).toEqual([]);
});

test("a wrong application, a wrong host and a short key are each reported", () => {
  expect(warnings(1_024, "urn:plc:line4", "opc.tcp://10.0.3.6:4840")).toEqual([
    "the server's certificate is for the application urn:plc:line3, the server calls itself urn:plc:line4",
    "the server's certificate does not name the host 10.0.3.6; it has DNS:plc3, IP Address:10.0.3.5",
    "the key of the server's certificate has 1024 bits; 2048 are the least that is secure",
  ]);
});

test("invalid bytes are reported as not a certificate", () => {
  expect(certificateWarnings(new Uint8Array([1]), "opc.tcp://plc3:4840", null)).toEqual([
    "the server's certificate cannot be read",
  ]);
});
