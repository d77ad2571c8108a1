// The commands about signals at the service: as they may be typed.
import type { Command } from "commander";
import type { SignalsOptions } from "./data/signals.ts";
import { configOption } from "./shared/config-option.ts";
import type { Console } from "./terminal/console.ts";
import type { ExitStatus } from "./terminal/exit-status.ts";
import { toItsEnd } from "./terminal/to-its-end.ts";

export function addSignalsCommands(program: Command, io: Console, ended: (status: ExitStatus) => void): void {
  const signals = program
    .command("signals")
    .description("metadata of signals: compare with the service, save, publish. Needs the grant of the Admin namespace")
    .addHelpText("after", "\nExample: tagferry signals diff -c tagferry.yaml");
  signals
    .command("diff")
    .description("what differs between here and the service, and what is there and not configured")
    .addOption(configOption(io))
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry signals diff -c tagferry.yaml")
    .action(async (options: SignalsOptions) =>
      ended(await toItsEnd((await import("./data/signals.ts")).diffSignals(options, io), io)),
    );
  signals
    .command("save")
    .description("save what is new or changed; exit status 1 where the service refuses some")
    .addOption(configOption(io))
    .option("--dry-run", "show what would be saved, and save nothing")
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry signals save -c tagferry.yaml --dry-run")
    .action(async (options: SignalsOptions) =>
      ended(await toItsEnd((await import("./data/signals.ts")).signalsSave(options, io), io)),
    );
  signals
    .command("publish")
    .description("make items of signals, or let items follow; what a person has edited stays")
    .addOption(configOption(io))
    .option("--dry-run", "show what would be published, and publish nothing")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
Published is what service.signals.require asks for: name, engUnit and labels unless it says otherwise.
With publish: createOnly in the configuration items that exist are left as they are, else they are updated.

Example: tagferry signals publish -c tagferry.yaml --dry-run`,
    )
    .action(async (options: SignalsOptions) =>
      ended(await toItsEnd((await import("./data/signals.ts")).signalsPublish(options, io), io)),
    );
}
