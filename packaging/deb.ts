// Builds the Debian package: the program, the Node that it runs on, the unit and an example of a configuration.
// Usage: node packaging/deb.ts FOLDER [amd64|arm64]; needs dpkg-deb. The last line printed is the package's path.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { nodeFlags } from "../src/cli/shared/node-flags.ts";
import { type Architecture, architectureOf, architectures, manifest, release, root } from "./release.ts";

/** Where the program stands on the machine. */
const home = "usr/lib/tagferry";

/** Resolves with the path of the package, in `folder`. */
export async function debianPackage(folder: string, architecture: Architecture): Promise<string> {
  const { name, version } = manifest(root);
  const stage = mkdtempSync(join(tmpdir(), "tagferry-deb-"));
  // Becomes the mode of the machine's root folder.
  chmodSync(stage, 0o755);
  try {
    await release(join(stage, home), architecture);
    const put = (path: string, text: string | Uint8Array, mode = 0o644) => {
      mkdirSync(dirname(join(stage, path)), { recursive: true });
      writeFileSync(join(stage, path), text);
      chmodSync(join(stage, path), mode);
    };
    put(`${home}/bin/node`, readFileSync(nodeBinary(architecture, stage)), 0o755);
    put("usr/bin/tagferry", launcher, 0o755);
    put("lib/systemd/system/tagferry.service", readFileSync(join(root, "systemd/tagferry.service")));
    cpSync(join(root, "config"), join(stage, "usr/share/doc/tagferry/examples"), { recursive: true });
    for (const file of ["README.md", "SECURITY.md", "docs"])
      cpSync(join(root, file), join(stage, "usr/share/doc/tagferry", file), { recursive: true });
    put("usr/share/doc/tagferry/changelog.gz", gzipSync(readFileSync(join(root, "CHANGELOG.md")), { level: 9 }));
    const notices = join(stage, home, "THIRD-PARTY.txt");
    put(
      "usr/share/doc/tagferry/copyright",
      `${readFileSync(join(root, "LICENSE"), "utf8")}\n${readFileSync(notices, "utf8")}`,
    );
    rmSync(notices);
    mkdirSync(join(stage, "etc/tagferry/credentials"), { recursive: true });
    put("DEBIAN/control", control(version, architecture, kilobytes(stage)));
    for (const script of readdirSync(join(import.meta.dirname, "debian")))
      put(`DEBIAN/${script}`, readFileSync(join(import.meta.dirname, "debian", script)), 0o755);
    mkdirSync(folder, { recursive: true });
    const file = join(folder, `${name}_${version}_${architecture}.deb`);
    // The same sources give the same package.
    const SOURCE_DATE_EPOCH = process.env.SOURCE_DATE_EPOCH ?? git("log", "-1", "--format=%ct");
    const level = process.env.DEB_LEVEL ?? "6";
    execFileSync("dpkg-deb", ["--root-owner-group", "-Zxz", `-z${level}`, "--build", stage, file], {
      env: { ...process.env, SOURCE_DATE_EPOCH },
      stdio: ["ignore", "ignore", "inherit"],
    });
    return file;
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

const launcher = `#!/bin/sh
exec /${home}/bin/node ${nodeFlags.join(" ")} /${home}/main.js "$@"
`;

/** Node for `architecture`, as the registry carries it: this machine's is installed, another's is fetched. */
function nodeBinary(architecture: Architecture, temporary: string): string {
  const name = `node-linux-${architectures[architecture]}`;
  const here = join(root, "node_modules", name, "bin/node");
  if (process.arch === architectures[architecture]) return here;
  const folder = join(dirname(temporary), `${name}-${process.pid}`);
  const version = manifest(join(root, "node_modules", `node-linux-${process.arch}`)).version;
  mkdirSync(folder, { recursive: true });
  execFileSync("npm", ["pack", `${name}@${version}`, "--silent"], { cwd: folder });
  execFileSync("tar", ["-xzf", `${name}-${version}.tgz`], { cwd: folder });
  return join(folder, "package/bin/node");
}

function control(version: string, architecture: Architecture, kilobytesInstalled: number): string {
  return `Package: tagferry
Version: ${version}
Architecture: ${architecture}
Maintainer: The tagferry developers <security@tagferry.invalid>
Installed-Size: ${kilobytesInstalled}
Depends: libc6 (>= 2.28), libstdc++6 (>= 8)
Recommends: systemd (>= 247), ca-certificates
Section: net
Priority: optional
Description: edge agent that carries tags to a time-series service and loses none
 Reads tags from MQTT brokers, Modbus devices and OPC UA servers, keeps every
 point on disk through outages and delivers them to a JSON-RPC time-series
 service within one request a second. Nothing is ever written to a device.
`;
}

function kilobytes(folder: string): number {
  return Number(execFileSync("du", ["-sk", folder], { encoding: "utf8" }).split("\t")[0]);
}

function git(...args: readonly string[]): string {
  return execFileSync("git", [...args], { cwd: root, encoding: "utf8" }).trim();
}

if (import.meta.main) {
  const [folder, architecture] = process.argv.slice(2);
  if (folder === undefined) throw new Error("usage: node packaging/deb.ts FOLDER [amd64|arm64]");
  process.stdout.write(`${await debianPackage(resolve(folder), architectureOf(architecture))}\n`);
}
