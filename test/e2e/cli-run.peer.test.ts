// `tagferry run` on a real terminal.
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { program } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { terminal } from "../support/terminal.ts";

test("an agent started on a terminal prints the address of its page and how to stop it, and ^C stops it", async () => {
  using folder = temporaryFolder();
  writeFileSync(
    folder.file("tagferry.yaml"),
    `version: 1
agent: { dataDir: ${JSON.stringify(folder.file("data"))} }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "\${PW:-x}" } } }
http: { listen: "127.0.0.1:0" }
sources: { waves: { type: simulator, tags: [{ input: a }] } }
`,
  );
  await using screen = terminal(`${process.execPath} ${program} run -c tagferry.yaml`, { cwd: folder.path });
  await screen.sees("  status page  http://127.0.0.1:");
  await screen.type("^C stops the agent", "\u0003");
  expect(await screen.status()).toBe(0);
});
