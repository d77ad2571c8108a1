// Certificates for tests: for any names and any period, issued by a test authority.
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

export interface Certified {
  readonly key: string;
  readonly cert: string;
}

export interface CertificateOptions {
  /** Host names and addresses. */
  readonly names: readonly string[];
  /** Milliseconds from now. By default valid from a day ago to a day from now. */
  readonly from?: number;
  readonly to?: number;
}

export interface Authority {
  /** The certificate to trust, as PEM. */
  readonly cert: string;
  /** Name and key that sign the certificates it issues. */
  readonly issuer: { readonly name: string; readonly key: KeyObject };
  readonly issue: (options: CertificateOptions) => Certified;
}

export const dayMs = 86_400_000;

/** `above`: the authority that issues its certificate; default: self-signed. */
export function authority(name = "Authority of a test", above?: Authority): Authority {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const issuer = { name, key: privateKey };
  const own = { subject: name, publicKey, from: -3_650 * dayMs, to: 3_650 * dayMs, extension: isAuthority };
  return {
    cert: pem(certificate(own, above?.issuer ?? issuer)),
    issuer,
    issue({ names, from = -dayMs, to = dayMs }) {
      const keys = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
      const subject = { subject: names[0] ?? "", publicKey: keys.publicKey, from, to, extension: alternatives(names) };
      return {
        key: keys.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
        cert: pem(certificate(subject, issuer)),
      };
    },
  };
}

interface Subject {
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly from: number;
  readonly to: number;
  readonly extension: Buffer;
}

/** An X.509 certificate (RFC 5280) in DER. */
function certificate(
  { subject, publicKey, from, to, extension }: Subject,
  issuer: { readonly name: string; readonly key: KeyObject },
): Buffer {
  const ecdsaWithSha256 = sequence(oid("2a8648ce3d040302"));
  const content = sequence(
    tagged(0xa0, tagged(0x02, Buffer.of(2))),
    tagged(0x02, Buffer.concat([Buffer.of(1), randomBytes(8)])),
    ecdsaWithSha256,
    commonName(issuer.name),
    sequence(time(from), time(to)),
    commonName(subject),
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(extension)),
  );
  return sequence(content, ecdsaWithSha256, bits(sign("sha256", content, issuer.key)));
}

const isAuthority = sequence(
  oid("551d13"),
  tagged(0x01, Buffer.of(0xff)),
  tagged(0x04, sequence(tagged(0x01, Buffer.of(0xff)))),
);

function alternatives(names: readonly string[]): Buffer {
  return sequence(
    oid("551d11"),
    tagged(0x04, sequence(...names.map((name) => tagged(0x82, Buffer.from(name, "latin1"))))),
  );
}

function commonName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(oid("550403"), tagged(0x0c, Buffer.from(name, "utf8")))));
}

/** A UTCTime, which can represent times until 2049. */
function time(fromNow: number): Buffer {
  const digits = new Date(Date.now() + fromNow).toISOString().replaceAll(/[-:T]/g, "").slice(2, 14);
  return tagged(0x17, Buffer.from(`${digits}Z`, "latin1"));
}

function oid(hex: string): Buffer {
  return tagged(0x06, Buffer.from(hex, "hex"));
}

function bits(content: Buffer): Buffer {
  return tagged(0x03, Buffer.concat([Buffer.of(0), content]));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
}

function pem(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
