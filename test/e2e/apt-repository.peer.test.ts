// The apt repository as docs/fleet.md describes it, with a temporary key and the machine's own apt.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";

const script = resolve(import.meta.dirname, "../../packaging/apt-repository");
const env = { PATH: process.env["PATH"] };

/** An empty package: a name, a version and no files. */
function packageOf(folder: string, version: string): string {
  const stage = `${folder}/stage-${version}`;
  mkdirSync(`${stage}/DEBIAN`, { recursive: true, mode: 0o755 });
  writeFileSync(
    `${stage}/DEBIAN/control`,
    `Package: tagferry\nVersion: ${version}\nArchitecture: amd64\nMaintainer: test <test@example.com>\nDescription: test\n`,
  );
  const file = `${folder}/tagferry_${version}_amd64.deb`;
  execFileSync("dpkg-deb", ["--build", stage, file], { stdio: "ignore" });
  return file;
}

test("a gateway upgrades from its stage and goes back, and takes nothing that the key has not signed", () => {
  using folder = temporaryFolder();
  const { path } = folder;
  const gnupg = { ...env, GNUPGHOME: folder.file("gnupg") };
  mkdirSync(gnupg.GNUPGHOME, { mode: 0o700 });
  const newKey = (name: string) =>
    execFileSync("gpg", ["--batch", "--passphrase", "", "--quick-gen-key", name, "ed25519", "sign"], {
      env: gnupg,
      stdio: "pipe",
    });
  newKey("fleet@example.com");
  newKey("other@example.com");
  const repository = folder.file("repository");
  const add = (suite: string, key: string, ...packages: readonly string[]) =>
    execFileSync(script, [repository, suite, key, ...packages], { env: gnupg, stdio: "pipe" });
  const [first, second] = [packageOf(path, "0.1.0"), packageOf(path, "0.2.0")];
  add("stable", "fleet@example.com", first);
  add("canary", "fleet@example.com", first, second);
  const key = folder.file("fleet.gpg");
  writeFileSync(key, readFileSync(`${repository}/tagferry-archive.gpg`));

  // Runs apt with its own lists, cache and sources.
  const apt = (suite: string, command: string, ...args: readonly string[]) => {
    const root = folder.file(`apt-${suite}`);
    for (const name of ["lists/partial", "cache/archives/partial", "etc"])
      mkdirSync(`${root}/${name}`, { recursive: true });
    writeFileSync(`${root}/etc/sources.list`, `deb [signed-by=${key} arch=amd64] file:${repository} ${suite} main\n`);
    writeFileSync(`${root}/status`, "");
    writeFileSync(
      `${root}/apt.conf`,
      `Dir::State::Lists "${root}/lists"; Dir::State::status "${root}/status"; Dir::Cache "${root}/cache";
Dir::Etc::SourceList "${root}/etc/sources.list"; Dir::Etc::SourceParts "/dev/null"; APT::Architecture "amd64"; APT::Sandbox::User "root";\n`,
    );
    return spawnSync(command, args, { env: { ...env, APT_CONFIG: `${root}/apt.conf` }, encoding: "utf8", cwd: root });
  };
  const candidate = (suite: string) =>
    /Candidate: (\S+)/.exec(apt(suite, "apt-cache", "policy", "tagferry").stdout)?.[1];
  for (const suite of ["stable", "canary"]) expect(apt(suite, "apt-get", "update")).toMatchObject({ status: 0 });
  expect([candidate("stable"), candidate("canary")]).toEqual(["0.1.0", "0.2.0"]);
  expect(apt("canary", "apt-get", "--simulate", "install", "tagferry=0.1.0").stdout).toContain("Inst tagferry (0.1.0");

  // The second stage of the rollout.
  add("stable", "fleet@example.com", second);
  expect(apt("stable", "apt-get", "update")).toMatchObject({ status: 0 });
  expect(candidate("stable")).toBe("0.2.0");

  // A package list signed with another key, and one that was changed after signing.
  add("foreign", "other@example.com", second);
  expect(apt("foreign", "apt-get", "update", "-o", "APT::Update::Error-Mode=any").status).not.toBe(0);
  const release = `${repository}/dists/canary/InRelease`;
  writeFileSync(release, readFileSync(release, "utf8").replace("Suite: canary", "Suite: canary2"));
  expect(apt("canary", "apt-get", "update", "-o", "APT::Update::Error-Mode=any").status).not.toBe(0);
});

test.each([
  ["a missing key", "other@example.com", "new.deb", "gpg has no secret key other@example.com"],
  ["a file that is no package", "fleet@example.com", "notes.deb", "notes.deb is not a Debian package"],
  ["a missing file", "fleet@example.com", "none.deb", "none.deb is not a Debian package"],
])("%s leaves the repository as it was", (_what, key, file, message) => {
  using folder = temporaryFolder();
  const gnupg = { ...env, GNUPGHOME: folder.file("gnupg") };
  mkdirSync(gnupg.GNUPGHOME, { mode: 0o700 });
  const make = ["--batch", "--passphrase", "", "--quick-gen-key", "fleet@example.com", "ed25519", "sign"];
  execFileSync("gpg", make, { env: gnupg, stdio: "pipe" });
  renameSync(packageOf(folder.path, "0.2.0"), folder.file("new.deb"));
  writeFileSync(folder.file("notes.deb"), "notes");
  const repository = folder.file("repository");
  const add = (signedBy: string, added: string) =>
    spawnSync(script, [repository, "stable", signedBy, added], { env: gnupg, encoding: "utf8", cwd: folder.path });
  expect(add("fleet@example.com", packageOf(folder.path, "0.1.0")).status).toBe(0);
  const content = () =>
    readdirSync(repository, { recursive: true, encoding: "utf8" })
      .filter((name) => statSync(`${repository}/${name}`).isFile())
      .map((name) => [name, readFileSync(`${repository}/${name}`, "base64")]);
  const before = content();
  const { status, stderr } = add(key, file);
  expect([status, stderr]).toEqual([1, expect.stringContaining(message)]);
  expect(content()).toEqual(before);
});

test("the script names a program that is missing", () => {
  const { status, stderr } = spawnSync("/bin/sh", [script, "repository", "stable", "key", "a.deb"], {
    env: { PATH: "/nowhere" },
    encoding: "utf8",
  });
  expect([status, stderr]).toEqual([1, "apt-repository: dpkg-scanpackages is missing; install dpkg-dev and gpg\n"]);
});
