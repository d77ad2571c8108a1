// `tagferry completion`: shell scripts, generated from the declarations of the help. They determine the typed command
// (its place) and offer its words; for free values the shell completes files.
import type { Command, Option } from "commander";
import type { Console } from "../terminal/console.ts";

export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

/** A command or group as typed after `tagferry`. The program itself is the empty text. */
interface Place {
  readonly path: string;
  readonly commands: readonly Command[];
  readonly options: readonly Option[];
  /** Values of the first argument, if it is an enumeration. */
  readonly values: readonly string[];
}

export async function completion(program: Command, shell: Shell, _options: unknown, io: Console): Promise<void> {
  const places = placesOf(program, []);
  io.print((shell === "fish" ? fishScript(places) : bashScript(places, shell)).trimEnd());
}

function placesOf(command: Command, path: readonly string[]): readonly Place[] {
  const help = command.createHelp();
  const own: Place = {
    path: path.join(" "),
    commands: help.visibleCommands(command).filter((each) => each.name() !== "help"),
    options: help.visibleOptions(command),
    values: command.registeredArguments[0]?.argChoices ?? [],
  };
  return [own, ...command.commands.flatMap((each) => placesOf(each, [...path, each.name()]))];
}

const introductions = {
  bash: "# bash completion of tagferry: source this file, or write it to /etc/bash_completion.d/tagferry\n",
  zsh: `#compdef tagferry
# zsh completion of tagferry: write this file as _tagferry into a folder of $fpath, or source it
autoload -Uz bashcompinit && bashcompinit
`,
};
const zshEnd = `
# Run by the completion system on the first use.
if [[ "$funcstack[1]" == _tagferry ]]; then _bash_complete -o default -F _tagferry; fi
`;

function bashScript(places: readonly Place[], shell: "bash" | "zsh"): string {
  const values = places.flatMap(({ path, options }) => options.flatMap((option) => bashValue(path, option)));
  const words = ({ commands, options, values: some }: Place) =>
    [...commands.map((each) => each.name()), ...some, ...options.flatMap(namesOf)].join(" ");
  return `${introductions[shell]}_tagferry() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" place="" offered="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place \${COMP_WORDS[i]}" in
      ${deeper(places).map(quoted).join("|")}) place="\${place:+$place }\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$place $prev" in
${values.join("\n")}
  esac
  case "$place" in
${places.map((place) => `    ${quoted(place.path)}) offered=${quoted(words(place))} ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$offered" -- "$cur"))
}
complete -o default -F _tagferry tagferry
${shell === "zsh" ? zshEnd : ""}`;
}

/** Offers nothing for free values, so that `-o default` completes files. */
function bashValue(path: string, option: Option): readonly string[] {
  if (!/[<[]/.test(option.flags)) return [];
  const where = namesOf(option).map((name) => quoted(`${path} ${name}`));
  const choices = quoted(option.argChoices?.join(" ") ?? "");
  const offer = option.argChoices ? `COMPREPLY=($(compgen -W ${choices} -- "$cur")); ` : "";
  return [`    ${where.join("|")}) ${offer}return ;;`];
}

function fishScript(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, commands, options, values }) => {
    const here = `complete -c tagferry -n ${quoted(`__tagferry_at "${path}"`)}`;
    return [
      ...commands.map((each) => `${here} -f -a ${quoted(each.name())} -d ${briefly(each.description())}`),
      ...values.map((value) => `${here} -f -a ${quoted(value)}`),
      ...options.map((option) => {
        const names = namesOf(option).map((name) => name.replace(/^--/, "-l ").replace(/^-(?!l )/, "-s "));
        return `${here} ${names.join(" ")}${fishValue(option)} -d ${briefly(option.description)}`;
      }),
    ];
  });
  return `# fish completion of tagferry: write this file to ~/.config/fish/completions/tagferry.fish
function __tagferry_at -a wanted
  set -l place ''
  for word in (commandline -opc)[2..]
    if contains -- "$place $word" ${deeper(places).map(fishQuoted).join(" ")}
      set place (string trim -- "$place $word")
    end
  end
  test "$place" = "$wanted"
end
${lines.join("\n")}
`;
}

function fishValue({ flags, argChoices }: Option): string {
  if (argChoices) return ` -x -a ${quoted(argChoices.join(" "))}`;
  if (/<(?:file|dir)\b/.test(flags)) return " -r -F";
  return /[<[]/.test(flags) ? " -x" : "";
}

/** The first part of a sentence, since shells show it in the rest of a line. */
function briefly(text: string): string {
  return fishQuoted(text.split(/[;:(]/, 1)[0]?.trim() ?? "");
}

function namesOf({ short, long }: Option): readonly string[] {
  return [short, long].filter((name) => name !== undefined);
}

/** All places as `parent word`. The script uses them to walk from place to place. */
function deeper(places: readonly Place[]): readonly string[] {
  return places.filter(({ path }) => path !== "").map(({ path }) => (path.includes(" ") ? path : ` ${path}`));
}

/** In all three shells, single quotes make everything literal. A quote itself is written outside of them. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
