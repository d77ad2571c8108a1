// Completion scripts: one that bash and zsh understand, and one of fish. Each finds out how far the command is typed, its
// place, and offers what may stand there; where a path or anything else may stand, the shell completes files.

/** A command, or a group of commands, as it is typed after `tagferry`; the program itself is the empty text. */
export interface CompletionPlace {
  readonly path: string;
  readonly commands: readonly Offered[];
  readonly options: readonly OfferedOption[];
  /** Values of the first argument, where there are only these. */
  readonly values: readonly string[];
}
interface Offered {
  readonly name: string;
  readonly what: string;
}
export interface OfferedOption {
  /** `-c`, `--config`. */
  readonly names: readonly string[];
  readonly what: string;
  /** none: it takes no value. file: a path. other: anything. */
  readonly value: "none" | "file" | "other";
  /** Values, where there are only these. */
  readonly choices: readonly string[];
}

export function bashScript(places: readonly CompletionPlace[]): string {
  return `# bash completion of tagferry: source this file, or write it to /etc/bash_completion.d/tagferry
${bashFunction(places)}`;
}

function bashFunction(places: readonly CompletionPlace[]): string {
  const values = places.flatMap(({ path, options }) => options.flatMap((option) => bashValue(path, option)));
  return `_tagferry() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" place="" offered="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place \${COMP_WORDS[i]}" in
      ${alternatives(deeper(places))}) place="\${place:+$place }\${COMP_WORDS[i]}" ;;
    esac
  done
  case "$place $prev" in
${values.join("\n")}
  esac
  case "$place" in
${places.map((place) => `    ${quoted(place.path)}) offered=${quoted(wordsOf(place))} ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$offered" -- "$cur"))
}
complete -o default -F _tagferry tagferry
`;
}

/** Nothing is offered where anything may stand: then \-o default completes files. */
function bashValue(path: string, { names, value, choices }: OfferedOption): readonly string[] {
  if (value === "none") return [];
  const places = alternatives(names.map((name) => `${path} ${name}`));
  return [
    choices.length > 0
      ? `    ${places}) COMPREPLY=($(compgen -W ${quoted(choices.join(" "))} -- "$cur")); return ;;`
      : `    ${places}) return ;;`,
  ];
}

export function zshScript(places: readonly CompletionPlace[]): string {
  return `#compdef tagferry
# zsh completion of tagferry: write this file as _tagferry into a folder of $fpath, or source it
autoload -Uz bashcompinit && bashcompinit
${bashFunction(places)}
# Run by the completion system on the first use.
if [[ "$funcstack[1]" == _tagferry ]]; then _bash_complete -o default -F _tagferry; fi
`;
}

export function fishScript(places: readonly CompletionPlace[]): string {
  const lines = places.flatMap(({ path, commands, options, values }) => {
    const here = `complete -c tagferry -n ${quoted(`__tagferry_at "${path}"`)}`;
    return [
      ...commands.map(({ name, what }) => `${here} -f -a ${quoted(name)} -d ${fishQuoted(what)}`),
      ...values.map((value) => `${here} -f -a ${quoted(value)}`),
      ...options.map(({ names, what, value, choices }) => {
        const flags = names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
        const takes =
          choices.length > 0
            ? ` -x -a ${quoted(choices.join(" "))}`
            : value === "none"
              ? ""
              : value === "file"
                ? " -r -F"
                : " -x";
        return `${here} ${flags.join(" ")}${takes} -d ${fishQuoted(what)}`;
      }),
    ];
  });
  const known = deeper(places)
    .map((place) => fishQuoted(place))
    .join(" ");
  return `# fish completion of tagferry: write this file to ~/.config/fish/completions/tagferry.fish
function __tagferry_at -a wanted
  set -l place ''
  for word in (commandline -opc)[2..]
    if contains -- "$place $word" ${known}
      set place (string trim -- "$place $word")
    end
  end
  test "$place" = "$wanted"
end
${lines.join("\n")}
`;
}

/** Places with one word more than their beginning, as `beginning word`: how a script goes from place to place. */
function deeper(places: readonly CompletionPlace[]): readonly string[] {
  return places.filter(({ path }) => path !== "").map(({ path }) => (path.includes(" ") ? path : ` ${path}`));
}

function wordsOf({ commands, options, values }: CompletionPlace): string {
  return [...commands.map(({ name }) => name), ...values, ...options.flatMap(({ names }) => names)].join(" ");
}

function alternatives(texts: readonly string[]): string {
  return texts.map(quoted).join("|");
}

/** For all three shells: in single quotes nothing is special, and a quote is written outside of them. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
