// A configuration without secrets, safe to share.
import { expect, test } from "vitest";
import { shownFile } from "../../../src/config/shown-file.ts";
import { drivers } from "../../../src/source/registry.ts";

test("secrets, comments and user names in addresses are left out; everything else is unchanged", () => {
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

test("a file that is not YAML is not shown, since its secrets cannot be found", () => {
  expect(shownFile("a: [\n  password: canary", drivers)).toBeUndefined();
});
