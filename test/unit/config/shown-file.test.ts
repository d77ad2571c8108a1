// A configuration as it may be given away.
import { expect, test } from "vitest";
import { shownFile } from "../../../src/config/shown-file.ts";
import { drivers } from "../../../src/source/registry.ts";

test("secrets, comments and names in addresses are left out; what is no secret stays as it is", () => {
  const shown = shownFile(
    `# canary-comment
version: 1
http: { token: canary-token-0123456789, listen: 127.0.0.1:8421 }
service:
  url: http://127.0.0.1:8420/v1 # canary-behind
  proxy: http://me:canary-proxy@proxy:3128
  auth: { basic: { username: me, password: canary-literal } }
sources:
  hall:
    type: mqtt
    url: mqtt://gw1:canary-in-url@broker
    password: "\${PASSWORD:-canary-default}"
    pasword: canary-misspelled
    tags:
      - { input: a, topic: "x", value: $.t }   # canary-tag
  line:
    type: opcua
    password: "\${file:/run/secrets/line}"
  other: { type: unheard, apiKey: canary-unheard, tokens: [canary-list] }
`,
    drivers,
  );
  expect(shown).toBe(`version: 1
http: { token: "***", listen: 127.0.0.1:8421 }
service:
  url: http://127.0.0.1:8420/v1
  proxy: http://***@proxy:3128
  auth: { basic: { username: me, password: "***" } }
sources:
  hall:
    type: mqtt
    url: mqtt://***@broker
    password: "\${PASSWORD:-***}"
    pasword: "***"
    tags:
      - { input: a, topic: "x", value: $.t }
  line:
    type: opcua
    password: "\${file:/run/secrets/line}"
  other: { type: unheard, apiKey: "***", tokens: [ "***" ] }
`);
});

test("a file that is no YAML is not shown: nobody knows what in it is a secret", () => {
  expect(shownFile("a: [\n  password: canary", drivers)).toBeUndefined();
});
