import { chown, lstat, mkdir, readdir, stat, symlink, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { openPki } from "../../../../src/source/opcua/certificates/pki.ts";
import { listCertificates } from "../../../../src/source/opcua/certificates/trust.ts";
import { loadStack } from "../../../../src/source/opcua/stack/stack.ts";
import { putKey } from "../../../support/opcua-key.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

test("sources that start together with a provided key all use it, and none fails", async () => {
  using folder = temporaryFolder();
  const stack = await loadStack(testRuntime().log);
  await putKey("agent", folder.file("pki"));
  const opened = await Promise.all([1, 2, 3, 4].map(() => openPki(stack, { agent: "gw1", dir: folder.path })));
  expect(new Set(opened.map(({ thumbprint }) => thumbprint)).size).toBe(1);
  for (const pki of opened) await pki[Symbol.asyncDispose]();
});

test("sources that start together create one certificate for the agent, and leave no partial file", async () => {
  using folder = temporaryFolder();
  const stack = await loadStack(testRuntime().log);
  const opened = await Promise.all([1, 2].map(() => openPki(stack, { agent: "gw1", dir: folder.path })));
  const own = (await listCertificates(folder.path)).filter(({ state }) => state === "own");
  expect(own).toHaveLength(1);
  expect(own[0]?.applicationUri).toMatch(/^urn:.*:tagferry:gw1$/);
  expect(new Set(opened.map(({ thumbprint }) => thumbprint))).toEqual(new Set([own[0]?.thumbprint]));
  expect(await readdir(folder.path)).toEqual(["pki"]);
  for (const pki of opened) await pki[Symbol.asyncDispose]();
});

test.runIf(process.getuid?.() === 0)(
  "what a link in the folder leads to is not given to the user of the agent",
  async () => {
    using folder = temporaryFolder();
    const [data, other] = [folder.file("data"), folder.file("other")];
    await mkdir(data);
    await writeFile(other, "");
    await putKey("agent", folder.file("data/pki"));
    await symlink(other, folder.file("data/pki/link"));
    await chown(data, 12_345, 12_345);
    await using _pki = await openPki(await loadStack(testRuntime().log), { agent: "gw1", dir: data });
    expect((await lstat(folder.file("data/pki/link"))).uid).toBe(12_345);
    expect((await stat(other)).uid).toBe(0);
  },
);
