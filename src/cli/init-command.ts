// `tagferry init` as it may be typed. Flags about a source stand after the `--source` they belong to.
import { type Command, InvalidArgumentError, Option } from "commander";
import { type SecurityMode, securityModes } from "../lib/security-mode.ts";
import type { InitOptions, SourceAnswers } from "./configure/init-options.ts";
import { localConfig } from "./shared/default-config.ts";
import { protocolsOf } from "./shared/protocols.ts";
import type { Console } from "./terminal/console.ts";
import type { ExitStatus } from "./terminal/exit-status.ts";
import { toItsEnd } from "./terminal/to-its-end.ts";
import { judged } from "./terminal/wrong-use.ts";

interface Typed extends Pick<InitOptions, "config" | "name" | "service" | "integration"> {
  readonly output?: string;
  readonly passwordFile?: string;
  readonly passwordEnv?: string;
  readonly answers?: string;
  readonly yes?: true;
  readonly offline?: true;
}

export function addInitCommand(program: Command, io: Console, ended: (status: ExitStatus) => void): void {
  const secured = protocolsOf("security");
  const sources: SourceAnswers[] = [];
  const source = (url: string) => void sources.push({ url });
  /** Adds what a flag says to the source before it. */
  const add = (answers: Partial<SourceAnswers>) => {
    const last = sources.pop();
    if (!last) throw new InvalidArgumentError("it must follow the --source it belongs to");
    sources.push({ ...last, ...answers });
  };
  const command = program
    .command("init")
    .description("write a commented configuration, from a few answers or from what browse --json found")
    .addOption(
      new Option(
        "-c, --config <file>",
        "where it is written; never over a file that is there; -: standard output",
      ).default(io.environment.variables["TAGFERRY_CONFIG"] || localConfig, `$TAGFERRY_CONFIG, ${localConfig}`),
    )
    .option("-o, --output <file>", "the same as -c")
    .option("-y, --yes", "ask nothing: what no flag says takes its default; stops where a person has to decide")
    .option("--answers <file>", "YAML with the answers; implies --yes, and flags go before it")
    .option("--name <name>", "name of the agent; not asked then")
    .option("--service <url>", "address of the service; not asked then")
    .option("--integration <id>", "Integration ID; not asked then")
    .option("--password-file <file>", "file with the password of the integration; not asked then")
    .option("--password-env <variable>", "environment variable with it instead")
    .option(
      "--source <url>",
      "address of a source, or simulator; may be repeated; no further ones are asked for",
      source,
    )
    .option("--source-name <name>", "name of the source before it", (name) => add({ name }))
    .option("--username <name>", "user name at the source before it", (username) => add({ username }))
    .option("--source-password-file <file>", "file with the password to that", (file) => add({ password: { file } }))
    .option("--source-password-env <variable>", "environment variable with it instead", (env) =>
      add({ password: { env } }),
    )
    .option("--ca-file <file>", `${protocolsOf("caFile")}: certificate authorities to trust, PEM`, (caFile) =>
      add({ caFile }),
    )
    .option("--trust <thumbprint>", `${secured}: trust the server's certificate, after comparing it`, (trust) =>
      add({ trust }),
    )
    .addOption(modeOption((securityMode) => add({ securityMode })))
    .option("--allow-insecure-password", "send the password to the source before it though nothing protects it")
    .option("--offline", "contact no source: their tags are written by hand")
    .addHelpText(
      "after",
      `
Files are relative to the folder of the configuration. Passwords come from files or variables: every user of the machine can
see the arguments of a program.

Example: tagferry init
Example: tagferry init --yes --name gw1 --source 'tcp://10.0.0.5:502?unit=1' --source opc.tcp://10.0.3.5:4840 --security-mode none
Example: tagferry browse opc.tcp://10.0.3.5:4840 --json | tagferry init -c line3.yaml`,
    )
    .action(async (typed: Typed) => ended(await judged(toItsEnd(initAs(typed, sources, io), io), io)));
  command.on("option:allow-insecure-password", () => {
    if (sources.length === 0) command.error("error: --allow-insecure-password must follow the --source it belongs to");
    else add({ allowInsecurePassword: true });
  });
}

function modeOption(add: (mode: SecurityMode) => void): Option {
  return new Option(
    "--security-mode <mode>",
    `${protocolsOf("security")}: ${securityModes.join(", ")}; default: the best the server offers, never none`,
  ).argParser((text) => {
    const mode = securityModes.find((known) => known === text);
    if (mode === undefined) throw new InvalidArgumentError(`expected one of ${securityModes.join(", ")}`);
    add(mode);
  });
}

/** Flags go before the file of answers. */
async function initAs(typed: Typed, sources: readonly SourceAnswers[], io: Console): Promise<ExitStatus> {
  const { passwordFile, passwordEnv, answers: file } = typed;
  const { init } = await import("./configure/init.ts");
  const answers =
    file === undefined ? undefined : await (await import("./configure/init-answers.ts")).readAnswers(file, io);
  const password = passwordFile !== undefined ? { file: passwordFile } : passwordEnv && { env: passwordEnv };
  const options: InitOptions = {
    config: typed.output ?? typed.config,
    name: typed.name ?? answers?.name,
    service: typed.service ?? answers?.service,
    integration: typed.integration ?? answers?.integration,
    password: password || answers?.password,
    sources: sources.length > 0 ? sources : (answers?.sources ?? []),
    unattended: typed.yes === true || answers !== undefined,
    offline: typed.offline === true || answers?.offline === true,
  };
  return await init(options, io);
}
