// Completion scripts of three shells. Each finds out how far the command is typed, its place, and offers what may stand
// there; where a path or anything else may stand, the shell completes files.
import type { OfferedOption, Place } from "./completion.ts";

export function bashScript(places: readonly Place[]): string {
  const values = places.flatMap(({ path, options }) => options.flatMap((option) => bashValue(path, option)));
  return `# bash completion of tagferry: source this file, or write it to /etc/bash_completion.d/tagferry
_tagferry() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" place="" words="" i
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
${places.map((place) => `    ${quoted(place.path)}) words=${quoted(wordsOf(place))} ;;`).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
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

export function zshScript(places: readonly Place[]): string {
  const values = places.flatMap(({ path, options }) => options.flatMap((option) => zshValue(path, option)));
  const offers = places.map((place) => {
    const commands = place.commands.map(({ name, what }) => zshDescribed(name, what));
    const options = place.options.flatMap(({ names, what }) => names.map((name) => zshDescribed(name, what)));
    return `    ${quoted(place.path)})
      offered=(${[...commands, ...place.values.map(quoted)].join(" ")})
      options=(${options.join(" ")}) ;;`;
  });
  return `#compdef tagferry
# zsh completion of tagferry: write this file as _tagferry into a folder of $fpath
_tagferry() {
  local place="" word
  local -a offered options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$place $word" in
      ${alternatives(deeper(places))}) place="\${place:+$place }$word" ;;
    esac
  done
  case "$place \${words[CURRENT-1]}" in
${values.join("\n")}
  esac
  case "$place" in
${offers.join("\n")}
  esac
  if [[ "$PREFIX" == -* ]]; then _describe option options
  elif (( $#offered )); then _describe command offered
  else _files
  fi
}
# Read by \`source\`, or run by the completion system on the first use.
if [[ "$funcstack[1]" == _tagferry ]]; then _tagferry "$@"; else compdef _tagferry tagferry; fi
`;
}

function zshValue(path: string, { names, value, choices }: OfferedOption): readonly string[] {
  if (value === "none") return [];
  const act =
    choices.length > 0 ? `compadd ${choices.map(quoted).join(" ")}` : value === "file" ? "_files" : "_message value";
  return [`    ${alternatives(names.map((name) => `${path} ${name}`))}) ${act}; return ;;`];
}

function zshDescribed(name: string, what: string): string {
  return quoted(`${name}:${what.replaceAll(":", "\\:")}`);
}

export function fishScript(places: readonly Place[]): string {
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
function deeper(places: readonly Place[]): readonly string[] {
  return places.filter(({ path }) => path !== "").map(({ path }) => (path.includes(" ") ? path : ` ${path}`));
}

function wordsOf({ commands, options, values }: Place): string {
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
