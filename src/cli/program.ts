// The command line: what may be typed, and which exit status each failure has. One file a command.

import { Argument, Command, CommanderError } from "commander";
import { withoutSecrets } from "../lib/without-secrets.ts";
import type { ServiceFlags } from "../service/config/flags.ts";
import type { CheckOptions } from "./configure/check.ts";
import type { Shell } from "./configure/completion.ts";
import { addDeviceCommands } from "./device-commands.ts";
import { addInitCommand } from "./init-command.ts";
import { addInspectionCommands } from "./inspection-commands.ts";
import type { InstallServiceOptions } from "./run/install-service.ts";
import type { RunOptions } from "./run/run.ts";
import { configOption } from "./shared/config-option.ts";
import { protocolsWith } from "./shared/protocols.ts";
import { addSignalsCommands } from "./signals-commands.ts";
import { concluded } from "./terminal/concluded.ts";
import { type Console, processConsole } from "./terminal/console.ts";
import { durationArgument } from "./terminal/duration-argument.ts";
import { type ExitStatus, exitStatus } from "./terminal/exit-status.ts";
import { toItsEnd } from "./terminal/to-its-end.ts";
import { version } from "./terminal/version.ts";

/** Runs one command on this process. Resolves with the exit status; never rejects. */
export async function main(args: readonly string[]): Promise<number> {
  using io = processConsole();
  return await runCommand(args, io);
}

/** Runs one command. Resolves with the exit status; never rejects. */
export async function runCommand(args: readonly string[], io: Console): Promise<number> {
  let status: number = exitStatus.done;
  const program = commands(io, (ended) => {
    status = ended;
  });
  return await concluded(async () => {
    try {
      await program.parseAsync(args, { from: "user" });
      return status;
    } catch (error) {
      if (error instanceof CommanderError) return error.exitCode === 0 ? exitStatus.done : exitStatus.usage;
      throw error;
    }
  }, io);
}

/** After a wrong option one wants to know the right ones of that command, not all commands. */
function nameOwnHelp(command: Command, path: string): void {
  for (const one of command.commands) {
    one.showHelpAfterError(`(${path} ${one.name()} --help tells more)`);
    nameOwnHelp(one, `${path} ${one.name()}`);
  }
}

function commands(io: Console, ended: (status: ExitStatus) => void): Command {
  const program = new Command("tagferry")
    .description(`Carries tags from ${protocolsWith("browse")} to a time-series service, and loses none on the way.`)
    .version(version(), "-V, --version")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.print(text.trimEnd()),
      writeErr: (text) => io.complain(withoutSecrets(text.trimEnd())),
    })
    .showHelpAfterError("(tagferry --help lists the commands)")
    .showSuggestionAfterError();

  program
    .command("run")
    .description("run the agent until it is told to stop")
    .addOption(configOption(io))
    .option(
      "--final",
      `close the sessions at ${protocolsWith("identity")} servers when it stops, instead of leaving them to the next start`,
    )
    .addHelpText("after", "\nExample: tagferry run -c tagferry.yaml")
    .action(async (options: RunOptions) => ended(await (await import("./run/run.ts")).run(options, io)));

  program
    .command("check")
    .description("list every error of a configuration, and what it will cost")
    .addOption(configOption(io))
    .option("--online", "also ask the service and each source; exit status 69 or 77 where one will not have it")
    .option("--with <files...>", "configurations of other agents: client identifiers that both use are errors")
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry check -c tagferry.yaml --online")
    .action(async (options: CheckOptions) =>
      ended(await toItsEnd((await import("./configure/check.ts")).check(options, io), io)),
    );

  addInitCommand(program, io, ended);

  const config = program
    .command("config")
    .description("the configuration as a file")
    .addHelpText("after", "\nExample: tagferry config migrate -c tagferry.yaml");
  config
    .command("migrate")
    .description("bring a file of an older format to the present one; version 1 is the first, so that nothing changes")
    .addOption(configOption(io))
    .option("--dry-run", "only show what would change")
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry config migrate -c tagferry.yaml --dry-run")
    .action(async (options: { config: string; json?: true }) =>
      ended(await toItsEnd((await import("./configure/config-migrate.ts")).migrateConfig(options, io), io)),
    );

  program
    .command("service")
    .description("run the local service")
    .option("--config <file>", "YAML with these options and several integrations; flags go before it")
    .option("--listen <address>", "where it listens (default: 127.0.0.1:8420)")
    .option("--data <dir>", "where it keeps signals and data; :memory: keeps nothing")
    .option("--integration <id>", "Integration ID")
    .option("--password <password>", "password of the integration")
    .option("--password-file <file>", "file that holds it: arguments are seen by every user of the machine")
    .option("--client-id <id>", "client credentials: identifier")
    .option("--client-secret <secret>", "client credentials: secret")
    .option("--client-secret-file <file>", "file that holds it")
    .option("--grant <namespaces>", "namespaces the integration may use (default: admin,platform)")
    .option("--namespace <name>", "prefix of the platform methods (default: platform)")
    .option("--throttle <how>", "requests beyond the rate: queue, reject or off (default: queue)")
    .option("--max-insert <size>", "limit of integration.insert")
    .option("--retention <time>", "delete points that are older")
    .option("--fault <fault...>", "cause faults, for drills: delay=2s,method=insert,rate=0.1")
    .addHelpText(
      "after",
      "\nExample: tagferry service --data ./service-data --integration c8ktonqsahsmemfs7lv0 --password secret",
    )
    .action(async (options: ServiceFlags) => ended(await (await import("./service/service.ts")).service(options, io)));

  program
    .command("demo")
    .description("the whole job on this machine: simulated devices, agent and local service, with an outage")
    .option("--duration <time>", "end by itself after this time, compare and tell", durationArgument)
    .option("--keep <dir>", "keep buffer and service data in this folder")
    .addHelpText("after", "\nExample: tagferry demo --duration 20s")
    .action(async (options: { duration?: number; keep?: string }) =>
      ended(await (await import("./service/demo.ts")).demo(options, io)),
    );

  program
    .command("install-service")
    .description("have systemd start this program, where no package has done that")
    .addOption(configOption(io, "configuration that the service will read"))
    .option("--serial", "also give it the serial ports")
    .option("--print", "show the unit and change nothing")
    .addHelpText("after", "\nExample: sudo tagferry install-service -c /etc/tagferry/tagferry.yaml")
    .action(async (options: InstallServiceOptions) =>
      ended(await (await import("./run/install-service.ts")).installService(options, io)),
    );

  program
    .command("schema")
    .description("print the JSON Schema of the configuration")
    .option("--reference", "print the annotated reference instead")
    .addHelpText("after", "\nExample: tagferry schema > tagferry.schema.json")
    .action(async (options: { reference?: true }) =>
      ended(await (await import("./configure/schema.ts")).schema(options, io)),
    );

  program
    .command("version")
    .description("print the version")
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry version --json")
    .action(({ json }: { json?: true }) =>
      io.print(
        json === true
          ? JSON.stringify({ version: version(), node: process.version })
          : `tagferry ${version()}, Node ${process.version}`,
      ),
    );

  program
    .command("completion")
    .description("print a script that has a shell complete commands and options")
    .addArgument(new Argument("<shell>", "which shell").choices(["bash", "zsh", "fish"]))
    .addHelpText("after", "\nExample: tagferry completion bash > /etc/bash_completion.d/tagferry")
    .action(async (shell: Shell) => ended((await import("./configure/completion.ts")).completion(shell, program, io)));

  addInspectionCommands(program, io, ended, runCommand);
  addDeviceCommands(program, io, ended);
  addSignalsCommands(program, io, ended);
  nameOwnHelp(program, "tagferry");
  return program;
}
