// Secrets in every field that can hold one, in valid and invalid forms: no message about a configuration shows them.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Environment } from "../../../src/config/files/environment.ts";
import { configIssues, loadConfig } from "../../../src/config/load.ts";
import { formatIssue } from "../../../src/config/nodes/issue.ts";
import { shownFile } from "../../../src/config/nodes/shown-values.ts";
import { runs } from "../../support/property.ts";

const canary = "canary77aa";

/** Values of a secret field as users write them, valid and invalid. */
const secretForms = [
  canary,
  `"${canary}"`,
  `'${canary}'`,
  `"${canary}`,
  `|${canary}`,
  `>-${canary}`,
  `|\n          ${canary}`,
  `>-\n          first\n          ${canary}: x`,
  `*${canary}`,
  `&${canary}`,
  `!${canary}`,
  `!!${canary} x`,
  `@${canary}`,
  `%${canary}`,
  `"\\q${canary}"`,
  `{${canary}}`,
  `{ a: ${canary} }`,
  `{ ${canary}: a }`,
  `[${canary}]`,
  `[a, ${canary}`,
  `}${canary}`,
  `x: ${canary}`,
  `x ] ${canary}`,
  `"x" ${canary}`,
  `"\${${canary}"`,
  `"\${x y ${canary}}"`,
  `"\${NAME:-${canary}}"`,
  `"\${UNSET}${canary}"`,
  `${canary} # ${canary}`,
  `\n          - ${canary}`,
  `\n          ${canary}`,
  `\n          x: ${canary}`,
] as const;

/** Addresses that contain a secret, with and without a scheme. */
const addressForms = [
  `gw:${canary}@broker`,
  `"gw:${canary}@broker"`,
  `gw:a:${canary}@broker:1883`,
  `gw:${canary}:a@broker:1883`,
  `gw:${canary}@a@broker:1883`,
  `gw:a/${canary}@broker`,
  `gw: ${canary}@broker`,
  `"gw:a ${canary}@broker"`,
  `"gw ${canary}@broker"`,
  `${canary}@broker`,
  `//gw:${canary}@broker`,
  `mqtt://gw:${canary}@broker`,
  `mqtt://gw:a/b${canary}@broker:1883`,
  `mqtt://gw:a ${canary}@broker:1883`,
  `mqtt://${canary}@broker`,
  `mqtt//gw:${canary}@broker`,
  `mqtt:/gw:${canary}@broker`,
  `unheard://gw:${canary}@broker`,
  `tcp://gw:${canary}@10.0.0.5:502`,
  `tcp://10.0.0.5/gw:${canary}@x`,
  `tcp://10.0.0.5:502?token=${canary}`,
  `opc.tcp://gw:${canary}@10.0.0.5:4840`,
  `http://gw:${canary}@10.0.0.5`,
  `http:/gw:${canary}@10.0.0.5`,
  `wss://broker/mqtt?token=${canary}`,
  `"wss://broker/mqtt?a=1&access_token=${canary}&b= 2"`,
  `http://h/v1?apiKey=${canary}#x`,
  `|\n          mqtt://gw:${canary}@broker`,
  `>-\n          mqtt://gw:${canary}\n          more@broker`,
  `mqtt://gw:${canary}\n          more@broker`,
  `[gw:${canary}@broker]`,
  `[a, "mqtt://gw:${canary}@broker"]`,
  `{ a: gw:${canary}@broker }`,
  `{gw:${canary}@broker}`,
  `"\${UNSET}:${canary}@broker"`,
  `"mqtt://gw:\${x ${canary}}@broker"`,
  `"mqtt://gw:${canary}@broker`,
] as const;

/** `HERE` is replaced by the value. */
const secretPlaces = [
  "service:\n  auth:\n    basic:\n      password: HERE",
  "service:\n  auth: { basic: { password: HERE } }",
  "service:\n  auth: { clientCredentials: { clientSecret: HERE } }",
  "service:\n  auth: HERE",
  "service:\n  auth: { basic: HERE }",
  "http: { token: HERE }",
  "http:\n  token: HERE",
  "sources:\n  hall:\n    type: mqtt\n    password: HERE",
  "sources:\n  hall:\n    type: mqtt\n    keyPassphrase: HERE",
  "sources:\n  hall:\n    type: mqtt\n    pasword: HERE",
  "sources:\n  hall:\n    type: mqtt\n    apiKey: HERE",
  "sources:\n  hall:\n    type: mqtt\n    password:HERE",
  "sources:\n  hall:\n    type: mqtt\n    password HERE",
  "sources:\n  hall:\n    type: mqtt\n    password=HERE",
  "sources:\n  hall: { type: mqtt, password: HERE }",
  "sources:\n  hall: { type: mqtt, password HERE }",
  "sources:\n  line:\n    type: opcua\n    password: HERE",
  "sources:\n  line:\n    type: opcua\n    userCertificate: { certFile: a, keyFile: b, keyPassphrase: HERE }",
  "sources:\n  bus:\n    type: modbus\n    password: HERE",
  "sources:\n  x:\n    type: unheard\n    token: HERE",
] as const;
const addressPlaces = [
  "service:\n  url: HERE",
  "service:\n  proxy: HERE",
  "service: HERE",
  "service:\n  auth: { clientCredentials: { file: a, tokenUrl: HERE } }",
  "sources:\n  hall:\n    type: mqtt\n    url: HERE",
  "sources:\n  hall:\n    type: mqtt\n    url:HERE",
  "sources:\n  hall:\n    type: mqtt\n    urll: HERE",
  "sources:\n  hall: { type: mqtt, url: HERE }",
  "sources:\n  hall:\n    type: mqtt\n    HERE",
  "sources:\n  hall:\n    type: mqtt\n    servers:\n      - HERE",
  "sources:\n  hall:\n    type: mqtt\n    servers: [HERE]",
  "sources:\n  hall: HERE",
  "sources:\n  line:\n    type: opcua\n    url: HERE",
  "sources:\n  bus:\n    type: modbus\n    url: HERE",
  "sources:\n  bus:\n    - url: HERE",
] as const;

const environment = (text: string): Environment => ({
  hostname: "gw",
  variables: { NAME: "" },
  cwd: "/",
  readFile: async (path) => {
    if (path === "/tagferry.yaml") return Buffer.from(text);
    throw Object.assign(new Error("no such file"), { code: "ENOENT" });
  },
  listFolder: async () => [],
});

/** Everything that `check` prints about this file as text and as JSON, and the file as a support bundle contains it. */
async function said(text: string): Promise<string> {
  const issues = await loadConfig("/tagferry.yaml", environment(text)).then(
    ({ warnings }) => warnings,
    (error: unknown) => configIssues(error),
  );
  return [...issues.map(formatIssue), JSON.stringify(issues), ...(shownFile(text) ?? [])].join("\n");
}

const filler = ["", "version: 1", "agent: { name: gw1 }", "log: { level: loud }", "a: [1", 'b: "c', "c: d: e"];

describe("no secret is shown, in whatever form it is written", () => {
  const cases = [
    ...secretPlaces.flatMap((place) =>
      secretForms
        // Below auth, the error names an unknown key, because it is usually a misspelling.
        .filter((form) => !(/(?:auth|basic): HERE/.test(place) && /^\{ ?canary/.test(form)))
        .map((form) => place.replace("HERE", () => form)),
    ),
    ...addressPlaces.flatMap((place) => addressForms.map((form) => place.replace("HERE", () => form))),
  ];

  test("each form in each place", async () => {
    const shown: string[] = [];
    for (const text of cases) {
      const all = await said(`version: 1\n${text}\n`);
      for (const line of all.split("\n")) if (line.includes(canary)) shown.push(`${text}\n  -> ${line}`);
    }
    expect(shown).toEqual([]);
  });

  test("among other invalid lines", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...filler),
        fc.constantFrom(...cases),
        fc.constantFrom(...filler),
        async (before, text, after) => {
          expect(await said([before, text, after].join("\n"))).not.toContain(canary);
        },
      ),
      runs(150),
    );
  });
});
