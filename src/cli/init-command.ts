// `tagferry init` as it may be typed. Flags about a source stand after the `--source` they belong to.
import { InvalidArgumentError, Option } from "commander";
import { securityModes } from "../lib/security-mode.ts";
import type { InitOptions, SourceAnswers } from "./configure/init-options.ts";
import { type CommandLine, parsedOption } from "./shared/arguments.ts";
import { localConfig } from "./shared/default-config.ts";
import type { ProtocolTexts } from "./shared/protocols.ts";
import type { Console } from "./terminal/console.ts";
import { type ExitStatus, requireValidArguments } from "./terminal/exit-status.ts";

interface Typed extends Pick<InitOptions, "config" | "name" | "service" | "integration"> {
  readonly output?: string;
  readonly passwordFile?: string;
  readonly passwordEnv?: string;
  readonly answers?: string;
  readonly yes?: true;
  readonly offline?: true;
}

export function addInitCommand(line: CommandLine, protocols: ProtocolTexts): void {
  const { io } = line;
  const secured = protocols.protocolsOf("security");
  const sources: SourceAnswers[] = [];
  /** Adds what a flag says to the source before it. */
  const add = (answers: Partial<SourceAnswers>) => {
    const last = sources.pop();
    if (!last) throw new InvalidArgumentError("it must follow the --source it belongs to");
    sources.push({ ...last, ...answers });
  };
  const modes = securityModes.join(", ");
  const mode = (text: string) => {
    const securityMode = securityModes.find((known) => known === text);
    if (securityMode === undefined) throw new InvalidArgumentError(`expected one of ${modes}`);
    add({ securityMode });
  };
  const command = line.add({
    name: "init",
    what: "write a commented configuration, from a few answers or from what browse --json found",
    takes: [
      new Option(
        "-c, --config <file>",
        "where it is written; never over a file that is there; -: standard output",
      ).default(io.environment.variables["TAGFERRY_CONFIG"] || localConfig, `$TAGFERRY_CONFIG, ${localConfig}`),
      "-o, --output <file>  the same as -c",
      "-y, --yes  ask nothing: what no flag says takes its default; stops where a person has to decide",
      "--answers <file>  YAML with the answers; implies --yes, and flags go before it",
      "--name <name>  name of the agent; not asked then",
      "--service <url>  address of the service; not asked then",
      "--integration <id>  Integration ID; not asked then",
      "--password-file <file>  file with the password of the integration; not asked then",
      "--password-env <variable>  environment variable with it instead",
      parsedOption(
        "--source <url>  address of a source, or simulator; may be repeated; no further ones are asked for",
        (url) => void sources.push({ url }),
      ),
      parsedOption("--source-name <name>  name of the source before it", (name) => add({ name })),
      parsedOption("--username <name>  user name at the source before it", (username) => add({ username })),
      parsedOption("--source-password-file <file>  file with the password to that", (file) =>
        add({ password: { file } }),
      ),
      parsedOption("--source-password-env <variable>  environment variable with it instead", (env) =>
        add({ password: { env } }),
      ),
      parsedOption(
        `--ca-file <file>  ${protocols.protocolsOf("caFile")}: certificate authorities to trust, PEM`,
        (caFile) => add({ caFile }),
      ),
      parsedOption(`--trust <thumbprint>  ${secured}: trust the server's certificate, after comparing it`, (trust) =>
        add({ trust }),
      ),
      parsedOption(
        `--security-mode <mode>  ${secured}: ${modes}; default: the best the server offers, never none`,
        mode,
      ),
      "--allow-insecure-password  send the password to the source before it though nothing protects it",
      "--offline  contact no source: their tags are written by hand",
    ],
    more: `Files are relative to the folder of the configuration. Passwords come from files or variables: every user of the machine can
see the arguments of a program.`,
    example: `tagferry init
Example: tagferry init --yes --name gw1 --source 'tcp://10.0.0.5:502?unit=1' --source opc.tcp://10.0.3.5:4840 --security-mode none
Example: tagferry browse opc.tcp://10.0.3.5:4840 --json | tagferry init -c line3.yaml`,
    run: async (typed: Typed) => requireValidArguments(initAs(typed, sources, io)),
  });
  command.on("option:allow-insecure-password", () => {
    if (sources.length === 0) command.error("error: --allow-insecure-password must follow the --source it belongs to");
    else add({ allowInsecurePassword: true });
  });
}

/** Flags go before the file of answers. */
async function initAs(typed: Typed, sources: readonly SourceAnswers[], io: Console): Promise<ExitStatus> {
  const { passwordFile, passwordEnv, answers: file } = typed;
  const { init } = await import("./configure/init.ts");
  const answers =
    file === undefined ? undefined : await (await import("./configure/init-options.ts")).readAnswers(file, io);
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
