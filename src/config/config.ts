// The configuration as the program uses it: checked, with every default, every reference replaced and every tag expanded.
import type { z } from "zod";
import type { BufferOptions } from "../buffer/disk/options.ts";
import type { ClusterOptions } from "../cluster/options.ts";
import type { Ambiguity, Driver, DriverTag } from "../core/driver.ts";
import { Secret } from "../core/secret.ts";
import type { TagId } from "../core/source.ts";
import type { ListenAddress } from "../lib/fields.ts";
import { placeholders } from "../mapping/input-template.ts";
import type { TagRule } from "../mapping/options.ts";
import type { ServiceOptions } from "../upload/client/options.ts";
import type { ConfigIssue } from "./issue.ts";

export const logLevels = ["debug", "info", "warn", "error"] as const;
type LogLevel = (typeof logLevels)[number];

export interface Config {
  /** Absolute path it was read from, for commands that are proposed to people. */
  readonly file?: string;
  readonly agent: {
    readonly name: string;
    /** Absolute path. */
    readonly dataDir: string;
    readonly unsyncedClock: "hold" | "write";
    /** Milliseconds between measurements. */
    readonly ownSignals: "off" | { readonly every: number };
  };
  readonly service: ServiceOptions;
  readonly buffer: BufferOptions;
  readonly http: {
    readonly listen: ListenAddress;
    /** Host names that the status page answers to beside its address; without port. */
    readonly allowedHosts: readonly string[];
    /** A client that sends it may change the running agent. */
    readonly token?: Secret | undefined;
  };
  readonly log: { readonly level: LogLevel };
  /** Undefined: this agent delivers by itself. */
  readonly cluster?: ClusterOptions | undefined;
  /** The sources, in the order of the file. */
  readonly sources: readonly ConfiguredSource[];
  /** Settings that are allowed but probably unintended. */
  readonly warnings: readonly ConfigIssue[];
}

/** One entry of `sources`. Templates, devices, defaults and variables are gone: each tag stands for itself. */
export interface ConfiguredSource {
  readonly name: string;
  readonly driver: Driver;
  /** As `driver.schema` gave them. */
  readonly options: z.output<z.ZodObject>;
  /** `TagId` is the index in here. */
  readonly tags: readonly DriverTag<z.ZodObject>[];
  /** What becomes of each tag's readings; the same index. */
  readonly rules: readonly TagRule[];
}

/** Undefined: each address of the tag has an Input ID of its own, or they may share one. */
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

/** Options, tags and rules of both say the same, secrets included. Names are not compared. */
export function sameSource(a: ConfiguredSource, b: ConfiguredSource): boolean {
  return (
    a.driver.type === b.driver.type && same(a.options, b.options) && same(a.tags, b.tags) && same(a.rules, b.rules)
  );
}

/** Sections whose change takes effect with a restart only, since everything stands on them. */
export function changedSections(a: Config, b: Config): readonly string[] {
  const sections = ["agent", "service", "buffer", "http", "log", "cluster"] as const;
  return sections.filter((section) => !same(a[section], b[section]));
}

function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof Secret || b instanceof Secret)
    return a instanceof Secret && b instanceof Secret && a.reveal() === b.reveal();
  if (a instanceof RegExp && b instanceof RegExp) return String(a) === String(b);
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [Object.entries(a), new Map(Object.entries(b))];
  return left.length === right.size && left.every(([key, value]) => right.has(key) && same(value, right.get(key)));
}
