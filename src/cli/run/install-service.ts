// `tagferry install-service`: has systemd start this program if no package has set that up.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, realpath, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { nodeFlags } from "../shared/node-flags.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed } from "../terminal/exit-status.ts";

interface InstallServiceOptions {
  readonly config: string;
  readonly serial?: boolean;
  readonly print?: boolean;
}

const execute = promisify(execFile);
const unitFolder = "/etc/systemd/system";
const packaged = ["/lib/systemd/system/tagferry.service", "/usr/lib/systemd/system/tagferry.service"];
/** Folders that the unit's sandbox hides. A program in them cannot be started. */
const hidden = ["/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"];

/** Installs and enables the unit but starts nothing. Rejects with `CommandFailed`. */
export async function installService(options: InstallServiceOptions, io: Console): Promise<void> {
  const config = resolve(io.environment.cwd, options.config);
  const entry = await realpath(process.argv[1] ?? "");
  const unit = unitFor(await template("tagferry.service"), { node: process.execPath, entry, config });
  const serial = options.serial ? await template("serial.conf") : undefined;
  if (options.print) {
    io.print(unit.trimEnd());
    if (serial !== undefined) io.print(`\n${serial.trimEnd()}`);
    return;
  }
  const obstacle = obstacleTo([process.execPath, entry, config]);
  if (obstacle !== undefined) throw new CommandFailed(obstacle);
  await ensureUser();
  await ensureFolders(dirname(config));
  const written = [join(unitFolder, "tagferry.service")];
  await writeFile(written[0] ?? "", unit);
  if (serial !== undefined) {
    const dropIn = join(unitFolder, "tagferry.service.d/serial.conf");
    await mkdir(dirname(dropIn), { recursive: true });
    await writeFile(dropIn, serial);
    written.push(dropIn);
  }
  await execute("systemctl", ["daemon-reload"]);
  await execute("systemctl", ["enable", "--quiet", "tagferry.service"]);
  for (const file of written) io.print(`wrote ${file}`);
  io.print(`enabled, not started. Next:`);
  if (!existsSync(config)) io.print(`  tagferry init -o ${config}`);
  io.print(`  chown root:tagferry ${config} && chmod 0640 ${config}     # the service runs as user tagferry`);
  io.print(`  systemctl start tagferry && systemctl status tagferry`);
}

/** Why the unit cannot be installed, with a remedy. Undefined: it can. */
function obstacleTo(paths: readonly string[]): string | undefined {
  const foreign = packaged.find(existsSync);
  if (foreign !== undefined)
    return `${foreign} is there already, from a package\n  systemctl edit tagferry changes it; remove the package to have this program started instead`;
  if (process.getuid?.() !== 0) return "only root may write units\n  run it with sudo, or see the unit with --print";
  if (!existsSync("/run/systemd/system"))
    return "this machine was not started by systemd\n  --print shows the unit, for another machine or as an example";
  const path = paths.find((each) => hidden.some((folder) => each.startsWith(folder)));
  if (path !== undefined)
    return `${path} lies where the service is not allowed to look\n  move it below /opt or /etc and run this again from there`;
  return undefined;
}

interface Places {
  readonly node: string;
  readonly entry: string;
  readonly config: string;
}

/** The packaged unit with the paths of this program and configuration. Pure. */
export function unitFor(unit: string, { node, entry, config }: Places): string {
  const program = [node, ...nodeFlags, entry].map(quoted).join(" ");
  return unit
    .replaceAll("/usr/bin/tagferry", () => program)
    .replaceAll(/^(Exec\w+=.*) -c \S+$/gm, (_line, before: string) => `${before} -c ${quoted(config)}`)
    .replace(/^ConditionPathExists=.*$/m, () => `ConditionPathExists=${escaped(config)}`)
    .replace(/^Documentation=.*\n/m, "")
    .replace(/:\/etc\/tagferry\/credentials\//, () => `:${escaped(join(dirname(config), "credentials"))}/`);
}

/** Escapes `%`, which is special everywhere in a unit. */
function escaped(path: string): string {
  return path.replaceAll("%", "%%");
}

/** Quotes a word of a command line, where `$` is special as well. */
function quoted(word: string): string {
  const text = escaped(word).replaceAll("$", "$$$$");
  return /[\s"'\\;]/.test(text) ? `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"` : text;
}

/** Next to the bundled program, or in the repository. */
async function template(name: string): Promise<string> {
  const places = ["./systemd/", "../../../systemd/"].map((folder) => new URL(folder + name, import.meta.url));
  const found = places.find((place) => existsSync(place));
  if (!found) throw new Error(`${name} is missing: the program was not installed as a whole`);
  return await readFile(found, "utf8");
}

async function ensureUser(): Promise<void> {
  if (await execute("getent", ["passwd", "tagferry"]).catch(() => undefined)) return;
  const home = ["--no-create-home", "--home-dir", "/var/lib/tagferry", "--shell", "/usr/sbin/nologin"];
  await execute("useradd", ["--system", "--user-group", ...home, "tagferry"]);
}

/** The service can read its configuration; systemd passes it the credentials next to it. */
async function ensureFolders(home: string): Promise<void> {
  if (!existsSync(home)) {
    await mkdir(home, { recursive: true, mode: 0o755 });
    await execute("chown", ["root:tagferry", home]);
    await execute("chmod", ["0750", home]);
  }
  await mkdir(join(home, "credentials"), { recursive: true, mode: 0o700 });
}
