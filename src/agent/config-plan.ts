// What a changed configuration would do: to sources, to Input IDs and to the meaning of what their signals hold.
import { z } from "zod";
import { forecast } from "../config/forecast.ts";
import { type Config, changedSections, same, sourceChanges } from "../config/format/config.ts";
import { isHidden } from "../config/nodes/excerpt.ts";
import type { ShownValue } from "../config/nodes/shown-values.ts";
import { withoutSecrets } from "../lib/text/without-secrets.ts";
import type { TagRule } from "../mapping/options.ts";
import { ownInputRules } from "./own-signals.ts";

const names = z.array(z.string()).readonly();
/** `null`: not set. Values as texts, without secrets. */
const change = { from: z.string().nullable(), to: z.string().nullable() };
const expected = z.object({ pointsPerDay: z.number(), bytesPerMonth: z.number() });

export const configPlan = z.object({
  checksum: z.object({ from: z.string(), to: z.string() }),
  sources: z.object({ started: names, restarted: names, stopped: names, unchanged: names }),
  /** Changed sections, which take effect only after a restart of the agent. */
  needRestart: names,
  /** Changed values of sections, of `defaults` and of sources that stay, as written. */
  settings: z.array(z.object({ path: z.string(), ...change })),
  /** Input IDs as the configuration has them: one with placeholders stands for many. */
  inputs: z.object({
    added: names,
    /** Their signals and data stay at the service. */
    removed: names,
    /** The address stays the same. Each is a new signal. */
    renamed: z.array(z.object({ from: z.string(), to: z.string() })),
    /** `meaning`: recorded and new values may differ in meaning. */
    changed: z.array(z.object({ input: z.string(), field: z.string(), ...change, meaning: z.boolean() })),
  }),
  /** Upper bounds. Sources that cannot be estimated are not included. */
  forecast: z.object({ from: expected, to: expected }),
});
export type ConfigPlan = z.output<typeof configPlan>;

/** A tag of an Input ID. */
interface Feed {
  readonly input: string;
  readonly source: string;
  /** Of the tag, by path: `at.offset`, `scale`, `signal.labels.site`. */
  readonly fields: ReadonlyMap<string, unknown>;
  /** Equal for tags of one source with the same address fields. */
  readonly address: string;
}

export function planOf(from: Config, to: Config): ConfigPlan {
  const sources = sourceChanges(from.sources, takenUp(from, to));
  const kept = new Set([...sources.restarted, ...sources.unchanged]);
  const valuesOf = ({ values = [], sources: all }: Config) => [
    ...values,
    ...all.flatMap((source) => (kept.has(source.name) ? (source.values ?? []) : [])),
  ];
  return {
    checksum: { from: from.checksum ?? "", to: to.checksum ?? "" },
    sources,
    needRestart: changedSections(from, to),
    settings: changedValues(valuesOf(from), valuesOf(to)),
    inputs: inputChanges(feedsOf(from), feedsOf(to)),
    forecast: { from: expectedOf(from), to: expectedOf(to) },
  };
}

/** The sources that a reload starts. The cluster opens at the next start; until then no lease keeps agents apart. */
export function takenUp(from: Config, to: Config): Config["sources"] {
  const isRead = (name: string) => from.sources.some((source) => source.name === name);
  return from.cluster ? to.sources : to.sources.filter(({ run, name }) => run === "here" || isRead(name));
}

function expectedOf(config: Config) {
  const { pointsPerSecond, bytesPerMonth } = forecast(config, ownInputRules(config));
  return { pointsPerDay: Math.round(pointsPerSecond * 86_400), bytesPerMonth: Math.round(bytesPerMonth) };
}

function changedValues(before: readonly ShownValue[], after: readonly ShownValue[]): ConfigPlan["settings"] {
  const byPath = (values: readonly ShownValue[]) => new Map(values.map(({ path, value }) => [path, value]));
  const [from, to] = [byPath(before), byPath(after)];
  return differing(from, to).map((path) => ({ path, from: from.get(path) ?? null, to: to.get(path) ?? null }));
}

/** The keys whose values differ. */
function differing(from: ReadonlyMap<string, unknown>, to: ReadonlyMap<string, unknown>): readonly string[] {
  return [...new Set([...from.keys(), ...to.keys()])].filter((key) => !same(from.get(key), to.get(key)));
}

/** By Input ID. */
function feedsOf(config: Config): ReadonlyMap<string, readonly Feed[]> {
  const feeds = config.sources.flatMap(({ name: source, driver, tags, rules }) =>
    rules.map((rule, index): Feed => {
      const tag = Object.entries(tags[index] ?? {}).filter(([key]) => Object.hasOwn(driver.tag.shape, key));
      const address = new Map(tag.flatMap(([key, value]) => leaves(value, key)));
      const fields = new Map([["source", source], ...address, ...ruleFields(rule)]);
      return { input: rule.input, source, fields, address: JSON.stringify([source, ...address].map(text)) };
    }),
  );
  const own = ownInputRules(config).map((rule): Feed => {
    return { input: rule.input, source: "", fields: new Map(ruleFields(rule)), address: rule.input };
  });
  return Map.groupBy([...feeds, ...own], ({ input }) => input);
}

function ruleFields({ input: _input, ...rule }: TagRule): [string, unknown][] {
  return Object.entries(rule).flatMap(([key, value]) => leaves(value, key));
}

/** The values below a map, by path. Anything but a map is one value. */
function leaves(value: unknown, path: string): [string, unknown][] {
  if (value === undefined) return [];
  const isMap = typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isMap ? Object.entries(value).flatMap(([key, below]) => leaves(below, `${path}.${key}`)) : [[path, value]];
}

type Feeds = ReturnType<typeof feedsOf>;

function inputChanges(before: Feeds, after: Feeds): ConfigPlan["inputs"] {
  const removed = new Set([...before.keys()].filter((input) => !after.has(input)));
  const added = new Set([...after.keys()].filter((input) => !before.has(input)));
  const former = new Map(
    [...removed].flatMap((input) => (before.get(input) ?? []).map((feed) => [feed.address, feed])),
  );
  const renamed: ConfigPlan["inputs"]["renamed"] = [];
  for (const to of added) {
    const from = after
      .get(to)
      ?.map(({ address }) => former.get(address)?.input)
      .find((input) => removed.has(input ?? ""));
    if (from === undefined) continue;
    removed.delete(from);
    added.delete(to);
    renamed.push({ from, to });
  }
  const changed = [...after].flatMap(([input, feeds]) => changesOf(input, before.get(input) ?? [], feeds));
  return { added: [...added], removed: [...removed], renamed, changed };
}

const noFields: Feed["fields"] = new Map();

/** Tags with the same address are compared, then the remaining ones in their order. */
function changesOf(input: string, before: readonly Feed[], after: readonly Feed[]): ConfigPlan["inputs"]["changed"] {
  if (before.length === 0) return [];
  const left = [...before];
  const equals = after.map(({ address }) => {
    const at = left.findIndex((feed) => feed.address === address);
    return at < 0 ? undefined : left.splice(at, 1)[0];
  });
  const pairs = after.map(({ fields: to }, i) => ({ from: (equals[i] ?? left.shift())?.fields ?? noFields, to }));
  return [...pairs, ...left.map(({ fields: from }) => ({ from, to: noFields }))].flatMap(({ from, to }) =>
    differing(from, to).map((field) => ({
      input,
      field,
      from: shown(field, from.get(field)),
      to: shown(field, to.get(field)),
      meaning: changesMeaning(field),
    })),
  );
}

/** Fields of all protocols that change which readings become points and how they are named, but not their meaning. */
const harmless = ["shared", "every", "valid", "badQuality", "report", "align", "sameTime", "maxInputs"];
const durations = ["every", "align", "report.heartbeat", "report.minInterval"];
const meaningful = ["signal.engUnit", "signal.type", "signal.enumValues"];

/** Every field of the address may: it determines what is read, and how. */
function changesMeaning(field: string): boolean {
  const [first = "", second = ""] = field.split(".");
  return first === "signal" ? meaningful.includes(`${first}.${second}`) : !harmless.includes(first);
}

function shown(field: string, value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === "number" && durations.includes(field)) return `${value}ms`;
  return isHidden(field, []) ? "***" : withoutSecrets(text(value));
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  return value instanceof RegExp ? String(value) : JSON.stringify(value);
}
