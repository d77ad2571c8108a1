// The commands that look at an agent and at what it keeps: as they may be typed.
import type { Command } from "commander";
import type { AgentAddressOptions } from "./agent-address.ts";
import type { Console } from "./console.ts";
import type { ExitStatus } from "./exit-status.ts";

export function addInspectionCommands(program: Command, io: Console, ended: (status: ExitStatus) => void): void {
  program
    .command("status")
    .description("ask the running agent: sources, buffer, delivery, and what to do where something is wrong")
    .option("-c, --config <file>", "configuration of the agent: it is asked at http.listen")
    .option("--url <url>", "address of the agent (default: http://127.0.0.1:8421)")
    .option("--json", "print all of it as JSON")
    .addHelpText("after", "\nExample: tagferry status --url http://10.0.0.9:8421")
    .action(async (options: AgentAddressOptions & { json?: true }) =>
      ended(await (await import("./status.ts")).status(options, io)),
    );
}
