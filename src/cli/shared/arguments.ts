// Declares commands, with the arguments and options that they share.
import { type Argument, type Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../../lib/time/duration.ts";
import type { Console } from "../terminal/console.ts";
import { type CommandKind, type ExitStatus, exitStatus, failureOf } from "../terminal/exit-status.ts";
import type { AgentQuery } from "./agent-client.ts";
import { defaultConfig, defaultPlaces, readableConfig } from "./default-config.ts";

interface Declared extends CommandKind {
  readonly name: string;
  readonly what: string;
  /** Arguments and options with two spaces before their text: `--dry-run  only show what would change`. */
  readonly takes?: readonly (string | Option | Argument)[];
  readonly more?: string;
  readonly example: string;
  /** Loads the action. Undefined: a group of commands. */
  readonly run?: () => Promise<Run>;
}

export interface ConfigOptions {
  readonly config: string;
  readonly json?: boolean;
}

/** The action. Its parameters are the values of `takes`, then the console. Undefined means `done`. */
type Run = (...given: never[]) => Promise<ExitStatus | void>;

export class CommandLine {
  readonly program: Command;
  readonly io: Console;
  status: ExitStatus = exitStatus.done;

  constructor(program: Command, io: Console) {
    this.program = program;
    this.io = io;
  }

  /** Commands with a common first word. The help of the group shows the example of its first command. */
  group(name: string, what: string, commands: readonly Declared[]): void {
    const below = this.add({ name, what, example: commands[0]?.example ?? "" });
    for (const declared of commands) this.add(declared, below);
  }

  add(declared: Declared, below = this.program): Command {
    const { name, what, takes = [], more, example, run } = declared;
    const command = below.command(name).description(what);
    const path = [below.parent?.name(), below.name(), name].filter((part) => part !== undefined);
    // After an invalid option, the operator needs the help of that command, not the list of all commands.
    command.showHelpAfterError(`(${path.join(" ")} --help shows its options)`);
    command.addHelpText("after", `${more === undefined ? "" : `\n${more}\n`}\nExample: ${example}`);
    for (const each of takes)
      if (typeof each !== "string") void (each instanceof Option ? command.addOption(each) : command.addArgument(each));
      else if (each.startsWith("-")) command.option(...flagsAndText(each));
      else command.argument(...flagsAndText(each));
    if (run)
      command.action(async (...given: unknown[]) => {
        try {
          // Commander passes the command itself after the options.
          const ended: ReturnType<Run> = Reflect.apply(await run(), undefined, [...given.slice(0, -1), this.io]);
          this.status = (await ended) ?? exitStatus.done;
        } catch (error) {
          throw await failureOf(error, declared, this.io);
        }
      });
    return command;
  }

  configOption(what = "configuration"): Option {
    return new Option("-c, --config <file>", what).default(defaultConfig(this.io.environment), defaultPlaces);
  }

  /** Adds the default configuration to the options; not with `--url`, which may be of another agent. */
  located<O extends AgentQuery>(command: (options: O, io: Console) => ReturnType<Run>) {
    return (options: O) => {
      const isNamed = options.config !== undefined || options.url !== undefined;
      const config = isNamed ? options.config : readableConfig(this.io.environment);
      return command(config === undefined ? options : { ...options, config }, this.io);
    };
  }
}

function flagsAndText(text: string): [flags: string, text: string] {
  const at = text.indexOf("  ");
  return [text.slice(0, at), text.slice(at + 2)];
}

export function parsedOption<T>(declared: string, parse: (text: string) => T): Option {
  return new Option(...flagsAndText(declared)).argParser(parse);
}

/** The option for commands that can also find an agent without a configuration. */
export function agentConfigOption(what: string): Option {
  return new Option("-c, --config <file>", `${what} (default: ${defaultPlaces}, unless --url is given)`);
}

export const jsonOption = "--json  print JSON";

/** In milliseconds. */
export function parseDurationArgument(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw new InvalidArgumentError("expected a length of time such as 20s or 2m");
  return ms;
}

export function urlOption(usual: string): Option {
  return parsedOption(`--url <url>  address of the agent (default: ${usual})`, (text) => {
    const protocol = URL.parse(text)?.protocol;
    if (protocol === "http:" || protocol === "https:") return text;
    throw new InvalidArgumentError("expected the address of an agent, as in http://127.0.0.1:8421");
  });
}

/** Parses an integer from `least` to `most`. `wanted`: its name in the error. */
export function numberFrom(least: number, most: number, wanted: string): (text: string) => number {
  return (text) => {
    if (/^\d+$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text);
    throw new InvalidArgumentError(`expected ${wanted} from ${least} to ${most}`);
  };
}

/** Options for the output format; `formats` in addition to CSV. */
export function formatOptions(...formats: readonly string[]): readonly Option[] {
  return [
    new Option("--format <format>", "what is printed").choices(["csv", ...formats]).default("csv"),
    new Option("--json", "the same as --format ndjson").implies({ format: "ndjson" }),
  ];
}
