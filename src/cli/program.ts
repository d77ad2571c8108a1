// Declares the command line. Each command loads its own file when it runs.
import { Argument, Command, CommanderError } from "commander";
import { reasonOf, remedyOf } from "../core/errors.ts";
import type { ProtocolTexts } from "../discover/device/protocols.ts";
import { withoutSecrets } from "../lib/text/without-secrets.ts";
import { shells } from "./configure/completion.ts";
import { addDeviceCommands } from "./device-commands.ts";
import { addInitCommand } from "./init-command.ts";
import { addClusterCommands, addInspectionCommands, addSignalsCommands } from "./inspection-commands.ts";
import { CommandLine, jsonOption, parseDurationArgument, parsedOption } from "./shared/arguments.ts";
import { type Console, processConsole } from "./terminal/console.ts";
import { exitStatus, exitStatusOf } from "./terminal/exit-status.ts";
import { version } from "./terminal/version.ts";

/** Runs one command in this process. Resolves with the exit status; never rejects. */
export async function main(args: readonly string[]): Promise<number> {
  using io = processConsole();
  const status = await runCommand(args, io);
  const failure = await io.unwritten();
  if (!failure) return status;
  io.complain(
    `tagferry: cannot write the results: ${reasonOf(failure)}\n  ${remedyOf(failure) ?? "write them elsewhere"}`,
  );
  return exitStatus.failed;
}

/** Commands that need no driver, not even in their help, so drivers are not loaded. */
const withoutDrivers = ["version", "--version", "-V", "buffer", "service", "status", "reload", "gaps"];
const noTexts: ProtocolTexts = {
  protocolsWith: () => "",
  protocolsOf: () => "",
  devicesWith: () => "",
  addressExamples: () => [],
};

export async function runCommand(args: readonly string[], io: Console): Promise<number> {
  return await exitStatusOf(async () => {
    try {
      const needsDrivers = !withoutDrivers.includes(args[0] ?? "");
      const line = commands(io, needsDrivers ? await import("../discover/device/protocols.ts") : noTexts);
      await line.program.parseAsync(args, { from: "user" });
      return line.status;
    } catch (error) {
      if (error instanceof CommanderError) return error.exitCode === 0 ? exitStatus.done : exitStatus.usage;
      throw error;
    }
  }, io);
}

function commands(io: Console, protocols: ProtocolTexts): CommandLine {
  const devices = protocols.protocolsWith("browse");
  const program = new Command("tagferry")
    .description(`Carries tags from ${devices} to a time-series service, and loses none on the way.`)
    .version(version(), "-V, --version")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.print(text.trimEnd()),
      writeErr: (text) => io.complain(withoutSecrets(text.trimEnd())),
    })
    .showHelpAfterError("(tagferry --help lists the commands)")
    .showSuggestionAfterError();
  const line = new CommandLine(program, io);
  const config = line.configOption();
  line.add({
    name: "run",
    what: "run the agent until it is stopped",
    takes: [
      config,
      `--final  close the sessions at ${protocols.protocolsWith("identity")} servers when it stops, instead of leaving them to the next start`,
    ],
    example: "tagferry run -c tagferry.yaml",
    goesOn: true,
    run: async () => (await import("./run/run.ts")).run,
  });
  line.add({
    name: "check",
    what: "list every error of a configuration, and what it will cost",
    takes: [
      config,
      "--online  also contact the service and each source; exit status 69 where one cannot be reached, 77 where one refuses the credentials",
      "--with <files...>  configurations of other agents: client identifiers that both use are errors",
      jsonOption,
    ],
    example: "tagferry check -c tagferry.yaml --online",
    run: async () => (await import("./configure/check.ts")).check,
  });
  addInitCommand(line, protocols);
  line.group("config", "the configuration as a file", [
    {
      name: "migrate",
      what: "bring a file of an older format to the present one; version 1 is the first, so that nothing changes",
      takes: [config, "--dry-run  only show what would change", jsonOption],
      example: "tagferry config migrate -c tagferry.yaml --dry-run",
      run: async () => (await import("./configure/schema.ts")).migrateConfig,
    },
  ]);
  line.add({
    name: "service",
    what: "run the local service",
    takes: [
      "--config <file>  YAML with these options and several integrations; flags go before it",
      "--listen <address>  where it listens (default: 127.0.0.1:8420)",
      "--data <dir>  where it keeps signals and data; :memory: keeps nothing",
      "--integration <id>  Integration ID",
      "--password <password>  password of the integration",
      "--password-file <file>  file that holds it: arguments are seen by every user of the machine",
      "--client-id <id>  client credentials: identifier",
      "--client-secret <secret>  client credentials: secret",
      "--client-secret-file <file>  file that holds it",
      "--grant <namespaces>  namespaces the integration may use (default: admin,platform)",
      "--namespace <name>  prefix of the platform methods (default: platform)",
      "--throttle <how>  requests beyond the rate: queue, reject or off (default: queue)",
      "--max-insert <size>  limit of integration.insert",
      "--retention <time>  delete points that are older",
      "--tls-cert <file>  listen over TLS with this certificate (PEM)",
      "--tls-key <file>  its private key (PEM)",
      "--cors <origin...>  web pages that may call it: https://dashboards.example.com, or * for any",
      "--fault <fault...>  cause faults, for drills: delay=2s,method=insert,rate=0.1",
    ],
    example: "tagferry service --data ./service-data --integration c8ktonqsahsmemfs7lv0 --password secret",
    goesOn: true,
    run: async () => (await import("./service/service.ts")).service,
  });
  line.add({
    name: "demo",
    what: "the whole job on this machine: simulated devices, agent and local service, with an outage",
    takes: [
      parsedOption(
        "--duration <time>  end after this time, and compare what was read with what the service stored",
        parseDurationArgument,
      ),
      "--keep <dir>  keep buffer and service data in this folder",
      "--cluster  two agents on three NATS servers, of which one agent and one server are killed",
      "--nats-server <file>  with --cluster: the program nats-server, if it is not in PATH",
    ],
    example: "tagferry demo --duration 20s",
    goesOn: true,
    run: async () => (await import("./service/demo.ts")).demo,
  });
  line.add({
    name: "install-service",
    what: "have systemd start this program, where no package has done that",
    takes: [
      line.configOption("configuration that the service will read"),
      "--serial  also give it the serial ports",
      "--print  show the unit and change nothing",
    ],
    example: "sudo tagferry install-service -c /etc/tagferry/tagferry.yaml",
    run: async () => (await import("./run/install-service.ts")).installService,
  });
  line.add({
    name: "schema",
    what: "print the JSON Schema of the configuration",
    takes: ["--reference  print the annotated reference instead"],
    example: "tagferry schema > tagferry.schema.json",
    run: async () => (await import("./configure/schema.ts")).schema,
  });
  line.add({
    name: "version",
    what: "print the version",
    takes: [jsonOption],
    example: "tagferry version --json",
    run: async () => async (options: { json?: true }) => {
      const text = `tagferry ${version()}, Node ${process.version}`;
      io.print(options.json ? JSON.stringify({ version: version(), node: process.version }) : text);
    },
  });
  line.add({
    name: "completion",
    what: "print a script that has a shell complete commands and options",
    takes: [new Argument("<shell>", "which shell").choices(shells)],
    example: "tagferry completion bash > /etc/bash_completion.d/tagferry",
    run: async () => (await import("./configure/completion.ts")).completion.bind(undefined, program),
  });
  addInspectionCommands(line, runCommand);
  addDeviceCommands(line, protocols);
  addSignalsCommands(line);
  addClusterCommands(line);
  return line;
}
