// A data directory on a file system that is mounted read-only. Needs the permission to mount.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { tagferry } from "../support/cli.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("a data directory on a read-only file system is reported as such, with exit status 1", async () => {
  using folder = temporaryFolder();
  using mount = readOnlyMount();
  writeFileSync(
    folder.file("agent.yaml"),
    `version: 1
agent: { name: test, dataDir: ${mount.path}/data }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: secret } } }
http: { listen: "127.0.0.1:0" }
sources: { waves: { type: simulator, tags: [{ input: sine }] } }
`,
  );

  const { status, stderr } = await tagferry(["run", "-c", folder.file("agent.yaml")]);

  expect(status).toBe(1);
  expect(stderr).toContain("read-only");
  expect(stderr).toContain("agent.dataDir");
});

function readOnlyMount(): Disposable & { readonly path: string } {
  const folder = temporaryFolder();
  execFileSync("mount", ["-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", folder.path]);
  return {
    path: folder.path,
    [Symbol.dispose]() {
      execFileSync("umount", [folder.path]);
      folder[Symbol.dispose]();
    },
  };
}
