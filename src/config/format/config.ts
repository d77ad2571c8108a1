// The validated configuration: defaults applied, references replaced, tags expanded.
import type { z } from "zod";
import type { Ambiguity, Driver, DriverTag } from "../../core/driver.ts";
import { Secret } from "../../core/secret.ts";
import type { TagId } from "../../core/source.ts";
import { placeholders } from "../../mapping/input-template.ts";
import type { TagRule } from "../../mapping/options.ts";
import type { ConfigIssue } from "../nodes/issue.ts";
import type { Position } from "../nodes/node.ts";
import type { ShownValue } from "../nodes/shown-values.ts";
import type { sections } from "./file-schema.ts";

type Sections = z.output<z.ZodObject<typeof sections>>;

/** `cluster` undefined: this agent delivers by itself. Times in milliseconds. */
export interface Config extends Omit<Sections, "agent"> {
  /** Absolute path of the file, for commands in hints. */
  readonly file?: string;
  /**
   * The first 12 hexadecimal digits of the SHA-256 of the file, its includes and its tables, in the order in which they
   * are read, each once. What references stand for is not in it. `cat FILES | sha256sum` gives the same.
   */
  readonly checksum?: string;
  /** The files that `checksum` covers, in its order, as positions name them. */
  readonly files?: readonly string[];
  /** The values of the sections and of `defaults`, for people. Undefined: the configuration is not from a file. */
  readonly values?: readonly ShownValue[] | undefined;
  /** `dataDir`: absolute path. */
  readonly agent: Sections["agent"] & { readonly name: string; readonly dataDir: string };
  /** In the order of the file. */
  readonly sources: readonly ConfiguredSource[];
  /** Valid settings that are probably unintended. */
  readonly warnings: readonly ConfigIssue[];
}

/** What people see of a configuration. */
export type ShownConfig = Pick<Config, "file" | "files" | "checksum" | "values" | "sources">;

export type OtlpOptions = NonNullable<Config["otlp"]>;

/** One entry of `sources`, with templates, devices, defaults and variables resolved into complete tags. */
export interface ConfiguredSource {
  readonly name: string;
  readonly driver: Driver;
  /** Parsed by `driver.schema`. */
  readonly options: z.output<z.ZodObject>;
  /** `TagId` is the index in this list. */
  readonly tags: readonly DriverTag<z.ZodObject>[];
  /** The mapping rule of each tag, at the same index. */
  readonly rules: readonly TagRule[];
  /** Where each tag is written, by its index. Undefined: the source is not from a file. */
  readonly places?: Record<"at" | "template", (tag: number) => Position | undefined>;
  readonly run: SourceRun;
  /** Its values but for tags, for people. Undefined: the source is not from a file. */
  readonly values?: readonly ShownValue[];
}

/** `here`: this agent reads it. Otherwise one of the cluster's agents that have it, with `preferHere` this one first. */
export type SourceRun = "here" | "anywhere" | "preferHere";

/**
 * Name under which devices know a source that several agents can read, so that each continues the session of the one
 * before it. Undefined: only this agent reads it.
 */
export function deviceIdentity(run: SourceRun, { integration }: { readonly integration: string }): string | undefined {
  return run === "here" ? undefined : integration;
}

/** Undefined: each address of the tag has its own Input ID, or they may share one. */
export function ambiguityOf(
  driver: Driver,
  tag: Omit<DriverTag<z.ZodObject>, "every">,
  { input, shared }: Pick<TagRule, "input" | "shared">,
): Ambiguity | undefined {
  return shared ? undefined : driver.ambiguity?.(tag, placeholders(input));
}

export function ambiguitiesOf({ driver, tags, rules }: ConfiguredSource): ReadonlyMap<TagId, Ambiguity> {
  const found = new Map<TagId, Ambiguity>();
  for (const [index, rule] of rules.entries()) {
    const tag = tags[index];
    const ambiguity = tag && ambiguityOf(driver, tag, rule);
    if (ambiguity) found.set(index as TagId, ambiguity); // a TagId is the index of its tag
  }
  return found;
}

/** Compares type, options (secrets included), tags, rules and who reads it, but not names. */
export function sameSource(a: ConfiguredSource, b: ConfiguredSource): boolean {
  return (
    a.driver.type === b.driver.type &&
    (a.run === "here") === (b.run === "here") &&
    same(a.options, b.options) &&
    same(a.tags, b.tags) &&
    same(a.rules, b.rules)
  );
}

export interface SourceChanges {
  readonly started: readonly string[];
  readonly restarted: readonly string[];
  readonly stopped: readonly string[];
  readonly unchanged: readonly string[];
}

/** What a change from the sources `before` to `next` does to each, by name. */
export function sourceChanges(before: readonly ConfiguredSource[], next: readonly ConfiguredSource[]): SourceChanges {
  const known = new Map(before.map((source) => [source.name, source]));
  const names = new Set(next.map(({ name }) => name));
  const stays = (source: ConfiguredSource) => {
    const former = known.get(source.name);
    return former !== undefined && sameSource(source, former);
  };
  const unchanged = new Set(next.filter(stays).map(({ name }) => name));
  const begun = [...names].filter((name) => !unchanged.has(name));
  return {
    started: begun.filter((name) => !known.has(name)),
    restarted: begun.filter((name) => known.has(name)),
    stopped: [...known.keys()].filter((name) => !names.has(name)),
    unchanged: [...known.keys()].filter((name) => unchanged.has(name)),
  };
}

/** Changed sections that take effect only after a restart. */
export function changedSections(a: Config, b: Config): readonly string[] {
  const sections = ["agent", "service", "buffer", "http", "log", "otlp", "cluster"] as const;
  return sections.filter((section) => !same(a[section], b[section]));
}

/** Compares settings by value, secrets included. */
export function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof Secret || b instanceof Secret)
    return a instanceof Secret && b instanceof Secret && a.reveal() === b.reveal();
  if (a instanceof RegExp && b instanceof RegExp) return String(a) === String(b);
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [Object.entries(a), new Map(Object.entries(b))];
  return left.length === right.size && left.every(([key, value]) => right.has(key) && same(value, right.get(key)));
}

/** The `url` option as configured, including credentials. Undefined: the source has none. */
export function sourceAddress(options: object): string | undefined {
  const { url } = options as { readonly url?: unknown }; // validated by the driver's schema
  // Some drivers parse the address and keep its text.
  const text: unknown = typeof url === "object" && url !== null && "text" in url ? url.text : url;
  return typeof text === "string" ? text : undefined;
}
