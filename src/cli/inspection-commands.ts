// The commands that look at an agent and at what it keeps: as they may be typed.
import { type Command, InvalidArgumentError, Option } from "commander";
import type { ReadOptions } from "./data/read.ts";
import type { BufferExportOptions } from "./inspect/buffer-export.ts";
import type { GapsOptions } from "./inspect/gaps.ts";
import type { RejectsOptions } from "./inspect/rejects.ts";
import type { SecurityOptions } from "./inspect/security.ts";
import type { RunCommand, SupportBundleOptions } from "./inspect/support-bundle.ts";
import type { ReloadOptions } from "./run/reload.ts";
import type { AgentAddressOptions } from "./shared/agent-address.ts";
import { agentConfigOption, configOption, located } from "./shared/config-option.ts";
import type { Console } from "./terminal/console.ts";
import { durationArgument } from "./terminal/duration-argument.ts";
import type { ExitStatus } from "./terminal/exit-status.ts";
import { toItsEnd } from "./terminal/to-its-end.ts";
import { urlArgument } from "./terminal/url-argument.ts";

export function addInspectionCommands(
  program: Command,
  io: Console,
  ended: (status: ExitStatus) => void,
  runCommand: RunCommand,
): void {
  program
    .command("status")
    .description("ask the running agent: sources, buffer, delivery, and what to do where something is wrong")
    .addOption(agentConfigOption("configuration of the agent: it is asked at http.listen"))
    .option("--url <url>", "address of the agent (default: http://127.0.0.1:8421)", urlArgument)
    .option("--json", "print all of it as JSON")
    .addHelpText("after", "\nExample: tagferry status --url http://10.0.0.9:8421")
    .action(async (options: AgentAddressOptions & { json?: true }) =>
      ended(await toItsEnd((await import("./inspect/status.ts")).status(located(options, io), io), io)),
    );

  program
    .command("reload")
    .description("have the running agent take up its changed configuration; a wrong one changes nothing and is told")
    .addOption(agentConfigOption("configuration of the agent: it is asked at http.listen"))
    .option("--url <url>", "address of the agent (default: http://127.0.0.1:8421)", urlArgument)
    .option("--token-file <file>", "file with the agent's http.token, to ask from another machine or as another user")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Whoever can read the data directory of the agent needs no token. Changes of sections other than sources need a restart.

Example: tagferry reload -c tagferry.yaml`,
    )
    .action(async (options: ReloadOptions) =>
      ended(await toItsEnd((await import("./run/reload.ts")).reload(located(options, io), io), io)),
    );

  program
    .command("gaps")
    .description("every interval in which tags were not recorded, with its cause and what became of it")
    .addOption(new Option("--since <time>", "how far back").argParser(durationArgument).default(7 * 86_400_000, "7d"))
    .addOption(agentConfigOption("configuration of the agent: it is asked, or its data directory is read"))
    .option("--url <url>", "address of the agent (default: http://127.0.0.1:8421)", urlArgument)
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry gaps --since 24h -c tagferry.yaml")
    .action(async (options: GapsOptions) =>
      ended(await toItsEnd((await import("./inspect/gaps.ts")).gaps(located(options, io), io), io)),
    );

  configuredAgent(program.command("support-bundle"), io)
    .description("gather what is needed to find out what is wrong, in one archive without secrets")
    .option("-o, --output <file>", "where it is written (default: tagferry-support-NAME-TIME.tar.gz)")
    .addHelpText(
      "after",
      `
The archive holds: configuration, its check, status, recent log, metrics, buffer, rejects, gaps, versions.
What the agent itself would have to tell is missing where it does not answer. Without a configuration --url is needed.

Example: tagferry support-bundle -c tagferry.yaml`,
    )
    .action(async (options: SupportBundleOptions) =>
      ended(await toItsEnd((await import("./inspect/support-bundle.ts")).supportBundle(options, io, runCommand), io)),
    );

  configuredAgent(program.command("security"), io)
    .description("what of the agent is protected and what is not: connections, files, process")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Without a running agent only what stands in the configuration and in its folders is told.

Example: tagferry security -c tagferry.yaml --json`,
    )
    .action(async (options: SecurityOptions) =>
      ended(await toItsEnd((await import("./inspect/security.ts")).security(options, io), io)),
    );

  const buffer = program
    .command("buffer")
    .description("look into a data directory without a lock, beside a running agent or into what is left of one")
    .addHelpText("after", "\nExample: tagferry buffer stat /var/lib/tagferry");
  buffer
    .command("stat")
    .description("what it holds: segments, points, what is to be delivered, what was lost")
    .argument("<dir>", "agent.dataDir, or the folder buffer in it")
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry buffer stat /var/lib/tagferry")
    .action(async (directory: string, options: { json?: true }) =>
      ended(await toItsEnd((await import("./inspect/buffer-stat.ts")).bufferStat(directory, options, io), io)),
    );
  buffer
    .command("verify")
    .description("read every byte; exit status 1 where anything is damaged")
    .argument("<dir>", "agent.dataDir, or the folder buffer in it")
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry buffer verify /var/lib/tagferry")
    .action(async (directory: string, options: { json?: true }) =>
      ended(await toItsEnd((await import("./inspect/buffer-verify.ts")).bufferVerify(directory, options, io), io)),
    );
  buffer
    .command("export")
    .description("print the points it holds; exit status 1 where some cannot be read")
    .argument("<dir>", "agent.dataDir, or the folder buffer in it")
    .addOption(new Option("--format <format>", "what is printed").choices(["csv", "ndjson"]).default("csv"))
    .addOption(new Option("--json", "the same as --format ndjson").implies({ format: "ndjson" }))
    .option("--undelivered", "only what the service does not have yet")
    .addHelpText(
      "after",
      `
In CSV an Input ID that a spreadsheet would take for a formula has a ' before it.

Example: tagferry buffer export /var/lib/tagferry --undelivered > points.csv`,
    )
    .action(async (directory: string, options: BufferExportOptions) =>
      ended(await toItsEnd((await import("./inspect/buffer-export.ts")).bufferExport(directory, options, io), io)),
    );

  const rejects = program
    .command("rejects")
    .description("points that the service refused for good")
    .addHelpText("after", "\nExample: tagferry rejects list -c tagferry.yaml");
  rejects
    .command("list")
    .description("reasons and counts")
    .addOption(configOption(io, "configuration of the agent"))
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry rejects list -c tagferry.yaml")
    .action(async (options: RejectsOptions) =>
      ended(await toItsEnd((await import("./inspect/rejects.ts")).listRejects(options, io), io)),
    );
  rejects
    .command("retry")
    .description("send them once more; the agent must not run. Exit status 1 where some are refused again")
    .addOption(configOption(io, "configuration of the agent"))
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry rejects retry -c tagferry.yaml")
    .action(async (options: RejectsOptions) =>
      ended(await toItsEnd((await import("./inspect/rejects.ts")).resendRejects(options, io), io)),
    );
  rejects
    .command("drop")
    .description("delete them")
    .addOption(configOption(io, "configuration of the agent"))
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry rejects drop -c tagferry.yaml")
    .action(async (options: RejectsOptions) =>
      ended(await toItsEnd((await import("./inspect/rejects.ts")).dropRejects(options, io), io)),
    );

  program
    .command("read")
    .description("read data back from the service; exit status 1 where an input cannot be read")
    .argument("<input...>", "Input IDs")
    .addOption(configOption(io))
    .addOption(new Option("--since <time>", "how far back").argParser(durationArgument).default(3_600_000, "1h"))
    .option("--until <time>", "how far back the end lies (default: now)", durationArgument)
    .option("--rollup <duration>", "count, min, max, sum and avg of each PT1M, PT1H ..., or of the whole: window")
    .addOption(new Option("--format <format>", "what is printed").choices(["csv", "ndjson", "plot"]).default("csv"))
    .addOption(new Option("--json", "the same as --format ndjson").implies({ format: "ndjson" }))
    .option("--width <letters>", "width of a plot (default: that of the terminal)", widthArgument)
    .addHelpText("after", "\nExample: tagferry read -c tagferry.yaml hall.north.temp --since 24h --rollup PT1H")
    .action(async (inputs: string[], options: ReadOptions) =>
      ended(await toItsEnd((await import("./data/read.ts")).read(inputs, options, io), io)),
    );
}

function widthArgument(text: string): number {
  const width = Number(text);
  if (!Number.isInteger(width) || width < 20 || width > 1_000)
    throw new InvalidArgumentError("expected a number of letters from 20 to 1000");
  return width;
}

/** A command that wants the configuration of an agent, and asks the agent itself where it runs. */
function configuredAgent(command: Command, io: Console): Command {
  return command
    .addOption(configOption(io, "configuration of the agent"))
    .option("--url <url>", "address of the agent (default: http.listen of the configuration)", urlArgument)
    .option("--token-file <file>", "file with the agent's http.token, where the data directory cannot be read");
}
