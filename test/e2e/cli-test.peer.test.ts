// `tagferry test` on a real terminal.
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { program } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { terminal } from "../support/terminal.ts";

test("values are updated in place, and ^C ends the command", async () => {
  using folder = temporaryFolder();
  writeFileSync(
    folder.file("tagferry.yaml"),
    `version: 1
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "\${PW:-x}" } } }
sources: { waves: { type: simulator, every: 300ms, tags: [{ input: count, wave: counter, min: 1000 }] } }
`,
  );
  await using screen = terminal(`${process.execPath} ${program} test -c tagferry.yaml`, { cwd: folder.path });
  await screen.sees("waves: connecting");
  await screen.sees("1 of 1 with a good value");
  await screen.sees("count  10");
  await screen.type("\u001b[2A", "\u0003");
  expect(await screen.status()).toBe(0);
});
