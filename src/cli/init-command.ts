// The arguments of `tagferry init`. Flags about a source follow the `--source` they belong to.
import { InvalidArgumentError, Option } from "commander";
import type { ProtocolTexts } from "../discover/device/protocols.ts";
import { securityModes } from "../lib/text/security-mode.ts";
import type { InitOptions, SourceAnswers } from "./configure/question.ts";
import { type CommandLine, parsedOption } from "./shared/arguments.ts";
import { localConfig } from "./shared/default-config.ts";
import type { Console } from "./terminal/console.ts";
import type { ExitStatus } from "./terminal/exit-status.ts";

interface Typed extends Omit<InitOptions, "sources" | "unattended"> {
  readonly output?: string;
  readonly answers?: string;
  readonly yes?: true;
}

export function addInitCommand(line: CommandLine, protocols: ProtocolTexts): void {
  const { io } = line;
  const secured = protocols.protocolsOf("security");
  const sources: SourceAnswers[] = [];
  /** Applies a flag to the preceding `--source`. */
  const add = (answers: Partial<SourceAnswers>) => {
    const last = sources.pop();
    if (!last) throw new InvalidArgumentError("it must follow the --source it belongs to");
    sources.push({ ...last, ...answers });
  };
  const ofSource = (declared: string, key: keyof SourceAnswers) =>
    parsedOption(declared, (value) => add({ [key]: value }));
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
      ofSource("--source-name <name>  name of the source before it", "name"),
      ofSource("--username <name>  user name at the source before it", "username"),
      ofSource("--source-password-file <file>  file with the password to that", "passwordFile"),
      ofSource("--source-password-env <variable>  environment variable with it instead", "passwordEnv"),
      ofSource(`--ca-file <file>  ${protocols.protocolsOf("caFile")}: certificate authorities to trust, PEM`, "caFile"),
      ofSource(`--trust <thumbprint>  ${secured}: trust the server's certificate, after comparing it`, "trust"),
      parsedOption(
        `--security-mode <mode>  ${secured}: ${modes}; default: the best the server offers, never none`,
        mode,
      ),
      "--allow-insecure-password  send the password of the --source before it over a connection that is not encrypted",
      "--offline  contact no source: their tags are written by hand",
    ],
    more: `Files are relative to the folder of the configuration. Passwords come from files or variables: every user of the machine can
see the arguments of a program.`,
    example: `tagferry init
Example: tagferry init --yes --name gw1 --password-file pw --source 'tcp://10.0.0.5:502?unit=1' --source opc.tcp://10.0.3.5:4840 --security-mode none
Example: tagferry browse opc.tcp://10.0.3.5:4840 --json | tagferry init -c line3.yaml`,
    judged: true,
    run: async () => (typed: Typed) => initAs(typed, sources, io),
  });
  command.on("option:allow-insecure-password", () => {
    if (sources.length === 0) command.error("error: --allow-insecure-password must follow the --source it belongs to");
    else add({ allowInsecurePassword: true });
  });
}

/** Flags override the answers file. */
async function initAs(typed: Typed, sources: readonly SourceAnswers[], io: Console): Promise<ExitStatus> {
  const { output, answers: file, yes = false, ...given } = typed;
  const { init } = await import("./configure/init.ts");
  const { readInitAnswers } = await import("./configure/question.ts");
  const answers = file === undefined ? undefined : await readInitAnswers(file, io);
  // If both name a place of the password, the flag's place is used.
  const { passwordFile, passwordEnv } = (given.passwordFile ?? given.passwordEnv) ? given : (answers ?? {});
  const options: InitOptions = {
    ...answers,
    ...given,
    passwordFile,
    passwordEnv,
    config: output ?? given.config,
    sources: sources.length > 0 ? [...sources] : (answers?.sources ?? []),
    unattended: yes || answers !== undefined,
  };
  return await init(options, io);
}
