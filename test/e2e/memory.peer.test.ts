// What many configured tags cost: an agent with 100,000 of them must fit into the 512 MB of its unit while it reads them.
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { residentMegabytes } from "../support/resident-memory.ts";
import { integration, password } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("an agent with 100,000 configured tags stays within 512 MB while it starts", {
  timeout: 400_000,
}, async () => {
  using folder = temporaryFolder();
  const tags = Array.from(
    { length: 100_000 },
    (_, i) =>
      `      - { input: "plant.tag${i}", topic: "plant/tag${i}", value: $.v, time: { at: $.ts, format: unixMs } }`,
  );
  const configuration = `version: 1
agent: { name: drill, dataDir: ${JSON.stringify(`${folder.path}/data`)} }
service: { url: "http://127.0.0.1:1/v1", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources:
  plant:
    type: mqtt
    url: mqtt://127.0.0.1:1
    tags:
${tags.join("\n")}
`;
  await using agent = await startAgent({ folder: folder.path, configuration });

  await eventually(() => residentMegabytes(agent.pid).now < 400, 60_000);
  expect(residentMegabytes(agent.pid).most).toBeLessThan(512);
});
