import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { createServer } from "node:tls";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { Secret } from "../../src/core/secret.ts";
import { authority } from "../support/certificate.ts";
import { npmPackageFolder } from "../support/npm-package.ts";
import { integration, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const run = promisify(execFile);

/** Every method of the client, and one refusal. Its arguments: the folder of the client, and the credentials. */
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

test("the public JavaScript client completes every method over TLS, unchanged but for the address", {
  timeout: 120_000,
}, async () => {
  await using service = await testService({
    namespace: "clarify",
    integrations: [
      { id: integration, clientId: "client", clientSecret: new Secret("secret"), grants: ["admin", "platform"] },
    ],
  });
  using folder = temporaryFolder();
  const issuer = authority();
  writeFileSync(folder.file("ca.pem"), issuer.cert);
  // As a proxy in front that ends TLS.
  const front = createServer(issuer.issue({ names: ["localhost"] }), (socket) => {
    const behind = connect(Number(new URL(service.url).port), "127.0.0.1");
    const end = () => [socket, behind].forEach((side) => side.destroy());
    for (const side of [socket, behind]) side.on("error", end);
    socket.pipe(behind).pipe(socket);
  });
  front.listen(0);
  await once(front, "listening");
  const address = front.address();
  const credential = {
    apiUrl: `https://localhost:${typeof address === "object" ? address?.port : ""}/v1/`,
    integration,
    credentials: { type: "client-credentials", clientId: "client", clientSecret: "secret" },
  };
  const client = await npmPackageFolder("@clarify/api", "0.3.0", "node-fetch@2.7.0");
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: folder.file("ca.pem") };
  const { stdout } = await run(process.execPath, ["-e", session, client, JSON.stringify(credential)], { env });
  front.close();
  const out = JSON.parse(stdout);
  const { id } = out.saved.signalsByInput.level;
  expect(out.saved.signalsByInput.level).toEqual({ id, created: true, updated: false });
  expect(out.inserted.signalsByInput.level).toEqual({ id, created: false });
  expect(out.selected).toEqual({ items: {}, data: { times: [], series: {} } });
  expect(out.refused).toEqual({ type: "invalidParams", params: { "data.series.level": ["not same length as times"] } });
});
