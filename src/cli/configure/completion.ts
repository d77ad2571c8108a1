// `tagferry completion`: a script that has a shell complete commands, options and their values. Written from the same
// declarations as the help, so that it knows whatever the help does.
import type { Command, Option } from "commander";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { bashScript, type CompletionPlace, fishScript, type OfferedOption, zshScript } from "./completion-scripts.ts";

const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

export function completion(shell: Shell, program: Command, io: Pick<Console, "print">): ExitStatus {
  const places = placesOf(program, []);
  const script = { bash: bashScript, zsh: zshScript, fish: fishScript }[shell];
  io.print(script(places).trimEnd());
  return exitStatus.done;
}

function placesOf(command: Command, path: readonly string[]): readonly CompletionPlace[] {
  const help = command.createHelp();
  const commands = help
    .visibleCommands(command)
    .map((each) => ({ name: each.name(), what: briefly(each.description()) }));
  const own: CompletionPlace = {
    path: path.join(" "),
    commands: commands.filter(({ name }) => name !== "help"),
    options: help.visibleOptions(command).map(offered),
    values: command.registeredArguments[0]?.argChoices ?? [],
  };
  return [own, ...command.commands.flatMap((each) => placesOf(each, [...path, each.name()]))];
}

function offered({ short, long, description, flags, argChoices }: Option): OfferedOption {
  const value = /<(?:file|dir)\b/.test(flags) ? "file" : /[<[]/.test(flags) ? "other" : "none";
  const names = [short, long].filter((name) => name !== undefined);
  return { names, what: briefly(description), value, choices: argChoices ?? [] };
}

/** Up to the first part of a sentence: a shell shows it in what is left of a line. */
function briefly(text: string): string {
  return text.split(/[;:(]/, 1)[0]?.trim() ?? "";
}
