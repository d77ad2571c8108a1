import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { Secret } from "../../src/core/secret.ts";
import { authority } from "../support/certificate.ts";
import { npmPackageFolder } from "../support/npm-package.ts";
import { integration, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const run = promisify(execFile);

/**
 * Calls every method of the client, and one that is refused. Arguments: the folder of the client and the credentials.
 */
const session = `
const [folder, credential] = process.argv.slice(1);
const { Client } = require("node:module").createRequire(folder + "/index.js")("@clarify/api");
const client = new Client(JSON.parse(credential));
const times = ["2026-03-01T10:00:00Z", "2026-03-01T11:00:00+01:00", "2026-03-01T10:01:00Z"];
(async () => {
  const saved = await client.saveSignals({ inputs: { level: { name: "Level", type: "numeric" } }, createOnly: false });
  const inserted = await client.insert({ data: { times, series: { level: [1, 2, null] } } });
  const data = { include: true, notBefore: times[0], before: "2026-03-02T00:00:00Z" };
  const selected = await client.selectItems({ items: { include: true }, data });
  const refused = await client
    .insert({ data: { times, series: { level: [1] } } })
    .catch(({ type, data }) => ({ type, params: data.params }));
  console.log(JSON.stringify({ saved, inserted, selected, refused }));
  process.exit();
})();
`;

test("the unchanged public JavaScript client completes every method over TLS", {
  timeout: 120_000,
}, async () => {
  using folder = temporaryFolder();
  const issuer = authority();
  const { cert, key } = issuer.issue({ names: ["localhost"] });
  const files = { "ca.pem": issuer.cert, "cert.pem": cert, "key.pem": key };
  for (const [name, text] of Object.entries(files)) writeFileSync(folder.file(name), text);
  await using service = await testService({
    namespace: "clarify",
    tlsCert: folder.file("cert.pem"),
    tlsKey: folder.file("key.pem"),
    integrations: [
      { id: integration, clientId: "client", clientSecret: new Secret("secret"), grants: ["admin", "platform"] },
    ],
  });
  const credential = {
    apiUrl: `${service.url.replace("127.0.0.1", "localhost")}/`,
    integration,
    credentials: { type: "client-credentials", clientId: "client", clientSecret: "secret" },
  };
  const client = await npmPackageFolder("@clarify/api", "0.3.0", "node-fetch@2.7.0");
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: folder.file("ca.pem") };
  const { stdout } = await run(process.execPath, ["-e", session, client, JSON.stringify(credential)], { env });
  const out = JSON.parse(stdout);
  const { id } = out.saved.signalsByInput.level;
  expect(out.saved.signalsByInput.level).toEqual({ id, created: true, updated: false });
  expect(out.inserted.signalsByInput.level).toEqual({ id, created: false });
  expect(out.selected).toEqual({ items: {}, data: { times: [], series: {} } });
  expect(out.refused).toEqual({ type: "invalidParams", params: { "data.series.level": ["not same length as times"] } });
});
