// What many configured tags cost: reading the file needs far more memory than the tags do, which must not stay resident.
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { residentMegabytes } from "../support/resident-memory.ts";
import { integration, password } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("an agent with 20,000 configured tags gives back what reading its file has taken", {
  timeout: 120_000,
}, async () => {
  using folder = temporaryFolder();
  const tags = Array.from(
    { length: 20_000 },
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

  await eventually(() => residentMegabytes(agent.pid).now < 260, 60_000);
  expect(residentMegabytes(agent.pid).most).toBeLessThan(450);
});
