// Declares the commands about devices and their certificates.
import { InvalidArgumentError, Option } from "commander";
import type { ProtocolTexts } from "../discover/device/protocols.ts";
import { recipeNames } from "./discover/recipes.ts";
import { type CommandLine, jsonOption, numberFrom, parseDurationArgument, parsedOption } from "./shared/arguments.ts";

export function addDeviceCommands(line: CommandLine, protocols: ProtocolTexts): void {
  const secured = protocols.protocolsOf("security");
  const replyUnit = new Option(
    "--reply-unit <which>",
    `${protocols.protocolsOf("replyUnit")}: accept replies that carry another unit than requested, for devices that always echo 0 or 255`,
  ).choices(["any"]);
  line.add({
    name: "browse",
    what: `list what ${protocols.devicesWith("browse")} offers, with its values`,
    takes: [
      `[url]  ${protocols.addressExamples().join(", ")} …; registers are narrowed down by ?unit=1&from=0&to=2000`,
      "--yaml  print tags to paste into a configuration",
      recipeOption(),
      jsonOption,
      `--endpoints  ${secured}: list the ways into the server and what protects each`,
      line.configOption("configuration that --source stands in"),
      "--source <name>  look as this source does: its address, login, security and the agent's certificate",
      "--username <name>  user name, where the device asks for one",
      "--password-file <file>  file with the password in it",
      `--user-cert <file>  ${secured}: certificate to log in with`,
      `--user-key <file>  ${secured}: its key`,
      `--security-mode <mode>  ${secured}: none, sign or signAndEncrypt; default: none where the server allows it`,
      `--policy <name>  ${secured}: security policy, as in Basic256Sha256`,
      replyUnit,
      `--trust <thumbprint>  ${secured}: trust the server's certificate, after comparing it: this once, with --source for good`,
    ],
    more: "A broker lists no topics: it is listened to for 10 s. Nothing is ever written to a device.",
    example: "tagferry browse opc.tcp://10.0.3.5:4840 --yaml",
    judged: true,
    run: async () => (await import("./discover/browse.ts")).browse,
  });
  line.add({
    name: "probe",
    what: `show one place of ${protocols.devicesWith("probe")} in every type and order; exit status 1 where none is as expected`,
    takes: [
      "<url>  tcp://host:502, rtu:///dev/ttyUSB0?baudRate=19200&parity=even …",
      new Option("--at <address>", "where to look, as in hr:100 or 40101").makeOptionMandatory(),
      parsedOption("--unit <number>  unit identifier", numberFrom(0, 255, "a number")).default(1),
      "--expect <value>  what the display of the device shows, as it is written there",
      replyUnit,
      jsonOption,
    ],
    example: "tagferry probe tcp://10.0.0.5:502 --unit 3 --at hr:100 --expect 231.4",
    judged: true,
    run: async () => (await import("./discover/probe.ts")).probe,
  });
  line.add({
    name: "test",
    what: "read every tag and show what comes and what becomes of it; nothing is buffered, sent or acknowledged",
    takes: [
      line.configOption(),
      "--once  end when every tag was read; exit status 1 where one gave no good value",
      parsedOption("--within <time>  how long --once waits for tags that are silent", parseDurationArgument).default(
        10_000,
        "10s",
      ),
      "--source <name>  only this source",
      "--json  print a line of JSON for each reading",
    ],
    more: "An agent that runs on the same configuration does not notice. A device that allows one connection refuses this one.",
    example: "tagferry test -c tagferry.yaml --once",
    run: async () => (await import("./discover/test.ts")).test,
  });

  const config = line.configOption("configuration of the agent");
  const refused = "trust a certificate that was refused; first compare it with what the server itself shows";
  const decisions = [
    ["accept", refused, "as in trust list and in the message of the source"],
    ["reject", "stop trusting a certificate", "as in trust list"],
  ] as const;
  line.group(
    "trust",
    `certificates of ${protocols.protocolsWith("certificates")} servers: which of them the agent trusts`,
    [
      {
        name: "list",
        what: "those it trusts, those it refused, and its own",
        takes: [config, jsonOption],
        example: "tagferry trust list -c tagferry.yaml",
        run: async () => (await import("./discover/trust.ts")).listTrust,
      },
      ...decisions.map(([name, what, where]) => ({
        name,
        what,
        takes: [`<thumbprint>  SHA-1 or SHA-256, ${where}`, config, jsonOption],
        example: `tagferry trust ${name} 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b -c tagferry.yaml`,
        run: async () => (await import("./discover/trust.ts")).decideTrust.bind(undefined, name),
      })),
    ],
  );
}

/** The names are files, which are listed only for its value, its help and completion, not at each start of a command. */
function recipeOption(): Option {
  const option = new Option(
    "--recipe [name]",
    "look at no device, print a complete configuration for this one, to be adapted; without a name list them",
  ).argParser((name) => {
    const names = recipeNames();
    if (names.includes(name)) return name;
    throw new InvalidArgumentError(`Allowed choices are ${names.join(", ")}.`);
  });
  return Object.defineProperty(option, "argChoices", { get: recipeNames });
}
