// A file is written as it was shown, next to other programs that write it at the same time.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { textHash } from "../../../src/discover/change/config-files.ts";
import { type Proposal, write } from "../../../src/discover/change/proposal.ts";
import { type TemporaryFolder, temporaryFolder } from "../../support/temporary-folder.ts";

const foreign = "sources: {} # by another program\n";

function proposal(folder: TemporaryFolder, before: string | undefined): Proposal {
  const after = "sources: { s: { type: simulator, tags: [] } }\n";
  return {
    file: folder.file("s.yaml"),
    source: "s",
    before,
    after,
    secret: { file: folder.file("s_password"), value: "canary" },
    base: textHash(before),
    result: textHash(after),
    difference: "",
    yaml: after,
    inputs: [],
    errors: [],
    warnings: [],
    obstacle: undefined,
    checksum: undefined,
  };
}

test.for([undefined, "sources: {}\n"])(
  "a file that another program has changed since is not written: %j",
  async (before) => {
    using folder = temporaryFolder();
    writeFileSync(folder.file("s.yaml"), foreign);
    const reload = () => expect.fail("nothing is to be taken up");
    expect(await write(proposal(folder, before), reload)).toEqual({ outcome: "stale" });
    expect(readFileSync(folder.file("s.yaml"), "utf8")).toBe(foreign);
    expect(readdirSync(folder.path)).toEqual(["s.yaml"]);
  },
);

test.for([undefined, "sources: {}\n"])("what another program writes before a refusal stays: %j", async (before) => {
  using folder = temporaryFolder();
  const file = folder.file("s.yaml");
  if (before !== undefined) writeFileSync(file, before);
  let reloads = 0;
  const reload = async () => {
    if (reloads++ === 0) writeFileSync(file, foreign);
    return { ok: false, reason: "no" };
  };
  expect(await write(proposal(folder, before), reload)).toMatchObject({ outcome: "refused" });
  expect(readdirSync(folder.path)).toEqual(["s.yaml"]);
  expect(readFileSync(file, "utf8")).toBe(foreign);
});

test("a file with the name of the password's is not replaced, and nothing is written", async () => {
  using folder = temporaryFolder();
  writeFileSync(folder.file("s_password"), "of another source\n");
  await expect(write(proposal(folder, undefined), async () => ({ ok: true }))).rejects.toThrow("EEXIST");
  expect(readFileSync(folder.file("s_password"), "utf8")).toBe("of another source\n");
  expect(existsSync(folder.file("s.yaml"))).toBe(false);
});
