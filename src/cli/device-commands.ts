// The commands that look at devices and at the trust in them: as they may be typed.
import { type Command, InvalidArgumentError, Option } from "commander";
import type { BrowseOptions } from "./discover/browse.ts";
import type { ProbeOptions } from "./discover/probe.ts";
import type { TestOptions } from "./discover/test.ts";
import type { TrustOptions } from "./discover/trust.ts";
import { configOption } from "./shared/config-option.ts";
import { addressExamples, devicesWith, protocolsOf, protocolsWith } from "./shared/protocols.ts";
import type { Console } from "./terminal/console.ts";
import { durationArgument } from "./terminal/duration-argument.ts";
import type { ExitStatus } from "./terminal/exit-status.ts";
import { toItsEnd } from "./terminal/to-its-end.ts";
import { judged } from "./terminal/wrong-use.ts";

export function addDeviceCommands(program: Command, io: Console, ended: (status: ExitStatus) => void): void {
  const secured = protocolsOf("security");
  program
    .command("browse")
    .description(`list what ${devicesWith("browse")} offers, with its values`)
    .argument("[url]", `${addressExamples().join(", ")} …; registers are narrowed down by ?unit=1&from=0&to=2000`)
    .option("--yaml", "print tags to paste into a configuration")
    .option("--json", "print JSON")
    .option("--endpoints", `${secured}: list the ways into the server and what protects each`)
    .addOption(configOption(io, "configuration that --source stands in"))
    .option("--source <name>", "look as this source does: its address, login, security and the agent's certificate")
    .option("--username <name>", "user name, where the device asks for one")
    .option("--password-file <file>", "file with the password in it")
    .option("--user-cert <file>", `${secured}: certificate to log in with`)
    .option("--user-key <file>", `${secured}: its key`)
    .option(
      "--security-mode <mode>",
      `${secured}: none, sign or signAndEncrypt; default: none where the server allows it`,
    )
    .option("--policy <name>", `${secured}: security policy, as in Basic256Sha256`)
    .addOption(replyUnitOption())
    .option(
      "--trust <thumbprint>",
      `${secured}: trust the server's certificate, after comparing it: this once, with --source for good`,
    )
    .addHelpText(
      "after",
      `
A broker lists no topics: it is listened to for 10 s. Nothing is ever written to a device.

Example: tagferry browse opc.tcp://10.0.3.5:4840 --yaml`,
    )
    .action(async (url: string | undefined, options: BrowseOptions) =>
      ended(await judged(toItsEnd((await import("./discover/browse.ts")).browse(url, options, io), io), io)),
    );

  program
    .command("probe")
    .description(
      `show one place of ${devicesWith("probe")} in every type and order; exit status 1 where none is as expected`,
    )
    .argument("<url>", "tcp://host:502, rtu:///dev/ttyUSB0?baudRate=19200&parity=even …")
    .requiredOption("--at <address>", "where to look, as in hr:100 or 40101")
    .option("--unit <number>", "unit identifier", unitArgument, 1)
    .option("--expect <value>", "what the display of the device shows, as it is written there")
    .addOption(replyUnitOption())
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry probe tcp://10.0.0.5:502 --unit 3 --at hr:100 --expect 231.4")
    .action(async (url: string, options: ProbeOptions) =>
      ended(await judged(toItsEnd((await import("./discover/probe.ts")).probe(url, options, io), io), io)),
    );

  program
    .command("test")
    .description("read every tag and show what comes and what becomes of it; nothing is buffered, sent or acknowledged")
    .addOption(configOption(io))
    .option("--once", "end when every tag was read; exit status 1 where one gave no good value")
    .addOption(
      new Option("--within <time>", "how long --once waits for tags that are silent")
        .argParser(durationArgument)
        .default(10_000, "10s"),
    )
    .option("--source <name>", "only this source")
    .option("--json", "print a line of JSON for each reading")
    .addHelpText(
      "after",
      `
An agent that runs on the same configuration does not notice. A device that allows one connection refuses this one.

Example: tagferry test -c tagferry.yaml --once`,
    )
    .action(async (options: TestOptions) =>
      ended(await toItsEnd((await import("./discover/test.ts")).test(options, io), io)),
    );

  const trust = program
    .command("trust")
    .description(`certificates of ${protocolsWith("certificates")} servers: which of them the agent believes`)
    .addHelpText("after", "\nExample: tagferry trust list -c tagferry.yaml");
  const dataDirectory = configOption(io, "configuration of the agent");
  trust
    .command("list")
    .description("those it trusts, those it refused, and its own")
    .addOption(dataDirectory)
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry trust list -c tagferry.yaml")
    .action(async (options: TrustOptions) =>
      ended(await toItsEnd((await import("./discover/trust.ts")).listTrust(options, io), io)),
    );
  trust
    .command("accept")
    .description("trust a certificate that was refused; first compare it with what the server itself shows")
    .argument("<thumbprint>", "SHA-1 or SHA-256, as in trust list and in the message of the source")
    .addOption(dataDirectory)
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry trust accept 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b -c tagferry.yaml")
    .action(async (thumbprint: string, options: TrustOptions) =>
      ended(await toItsEnd((await import("./discover/trust.ts")).acceptTrust(thumbprint, options, io), io)),
    );
  trust
    .command("reject")
    .description("trust a certificate no longer")
    .argument("<thumbprint>", "SHA-1 or SHA-256, as in trust list")
    .addOption(dataDirectory)
    .option("--json", "print JSON")
    .addHelpText("after", "\nExample: tagferry trust reject 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b -c tagferry.yaml")
    .action(async (thumbprint: string, options: TrustOptions) =>
      ended(await toItsEnd((await import("./discover/trust.ts")).rejectTrust(thumbprint, options, io), io)),
    );
}

function replyUnitOption(): Option {
  const text = `${protocolsOf("replyUnit")}: accept replies that carry another unit than was asked, for devices that always echo 0 or 255`;
  return new Option("--reply-unit <which>", text).choices(["any"]);
}

function unitArgument(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) > 255) throw new InvalidArgumentError("expected a number from 0 to 255");
  return Number(text);
}
