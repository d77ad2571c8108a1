// Parses resource filters into predicates, and defines their fields.
import { parseTimestamp } from "../../wire/timestamp.ts";
import { isGiven, isRecord } from "../call/params.ts";
import { type Faults, invalidParams } from "../call/rpc-fault.ts";
import type { ItemRecord, Signal } from "../store/resource-store.ts";
import { LinearRegex, RegexBudgetError, RegexSyntaxError, type StepBudget } from "./linear-regex.ts";

/** A field value. Times are milliseconds since the epoch, and RFC 3339 in filters. */
export type FieldValue = string | number | boolean | null | readonly string[];
type FieldKind = "text" | "time" | "flag";

export interface Field<Resource> {
  readonly kind: FieldKind;
  read(resource: Resource): FieldValue;
}

/** The field at a path, if any. Paths are split at the first dot only, since label keys may contain dots. */
export type FieldTable<Resource> = (path: string) => Field<Resource> | undefined;

type Readers<Resource> = Readonly<Record<string, Field<Resource>>>;

const text = <Resource>(read: (resource: Resource) => FieldValue): Field<Resource> => ({ kind: "text", read });
const time = <Resource>(read: (resource: Resource) => number): Field<Resource> => ({ kind: "time", read });

const shared: Readers<Signal | ItemRecord> = {
  id: text(({ id }) => id),
  name: text(({ attributes }) => attributes.name),
  description: text(({ attributes }) => attributes.description),
  type: text(({ attributes }) => attributes.type),
  valueType: text(({ attributes }) => attributes.type),
  sourceType: text(({ attributes }) => attributes.sourceType),
  engUnit: text(({ attributes }) => attributes.engUnit),
  sampleInterval: text(({ attributes }) => attributes.sampleInterval),
  gapDetection: text(({ attributes }) => attributes.gapDetection),
  createdAt: time(({ createdAt }) => createdAt),
  updatedAt: time(({ updatedAt }) => updatedAt),
};

const ofSignals: Readers<Signal> = {
  ...shared,
  input: text(({ input }) => input),
  inputId: text(({ input }) => input),
  item: text(({ item }) => item),
  integration: text(({ integration }) => integration),
};

const ofItems: Readers<ItemRecord> = {
  ...shared,
  visible: { kind: "flag", read: ({ visible }) => visible },
};

export const signalFields: FieldTable<Signal> = (path) => keyed(path) ?? own(ofSignals, path);
export const itemFields: FieldTable<ItemRecord> = (path) => keyed(path) ?? own(ofItems, path);

/** `labels.<key>` and `annotations.<key>`. */
function keyed(path: string): Field<Signal | ItemRecord> | undefined {
  const dot = path.indexOf(".");
  if (dot < 0 || dot === path.length - 1) return undefined;
  const key = path.slice(dot + 1);
  const group = path.slice(0, dot);
  if (group !== "labels" && group !== "annotations") return undefined;
  return text(({ attributes }) => own<FieldValue>(attributes[group], key) ?? null);
}

function own<T>(map: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}

export type Predicate<Resource> = (resource: Resource) => boolean;

/** Limits of a filter's cost. */
const maxDepth = 16;
const maxConditions = 1_000;
/** Most steps of compiling and matching regular expressions: a second or less. */
const maxRegexSteps = 20_000_000;

/** Parses the filter at `path`. The result is only valid without faults. A missing filter matches everything. */
export function parseFilter<Resource>(
  filter: unknown,
  fields: FieldTable<Resource>,
  path: string,
  faults: Faults,
): Predicate<Resource> {
  let conditions = 0;
  const budget: StepBudget = { left: maxRegexSteps };
  /** Replaces an invalid part. */
  const refused = (at: string, fault: string): Predicate<Resource> => {
    faults.add(at, fault);
    return () => true;
  };
  const tooMany = () => refused(path, `must not have more than ${maxConditions} conditions`);

  function all(value: unknown, at: string, depth: number): Predicate<Resource> {
    if (!isGiven(value)) return () => true;
    if (!isRecord(value)) return refused(at, "must be an object");
    if (depth > maxDepth) return refused(at, `must not be nested more than ${maxDepth} deep`);
    const parts = Object.entries(value).map(([key, operand]) => entry(key, operand, `${at}.${key}`, depth));
    return (resource) => parts.every((part) => part(resource));
  }

  function entry(key: string, operand: unknown, at: string, depth: number): Predicate<Resource> {
    if (key === "$and" || key === "$or") return list(key, operand, at, depth);
    if (++conditions > maxConditions) return tooMany();
    if (key.startsWith("$")) return refused(at, "unknown operator");
    const field = fields(key);
    if (!field) return refused(at, "cannot be filtered by this field");
    const test = parseCondition({ field, faults, budget }, operand, at);
    return (resource) => test(field.read(resource));
  }

  function list(key: "$and" | "$or", operand: unknown, at: string, depth: number): Predicate<Resource> {
    // A public client sends null for an empty list; the hosted service treats it as no condition.
    if (operand === null) return () => true;
    if (!Array.isArray(operand)) return refused(at, "must be an array of filters");
    if ((conditions += operand.length) > maxConditions) return tooMany();
    const parts = operand.map((part: unknown, index) => all(part, `${at}.${index}`, depth + 1));
    return key === "$and"
      ? (resource) => parts.every((part) => part(resource))
      : (resource) => parts.some((part) => part(resource));
  }

  const matches = all(filter, path, 0);
  return (resource) => {
    try {
      return matches(resource);
    } catch (error) {
      if (!(error instanceof RegexBudgetError)) throw error;
      throw invalidParams(path, error.message, error);
    }
  };
}

type Scalar = string | number | boolean | null;
type Test<Value> = (value: Value) => boolean;

interface Subject {
  readonly field: Field<never>;
  readonly faults: Faults;
  readonly budget: StepBudget;
}

function parseCondition(subject: Subject, operand: unknown, at: string): Test<FieldValue> {
  if (!isRecord(operand)) return ofAny(equals(scalar(subject, operand, at)));
  const tests = Object.entries(operand).map(([operator, value]) => {
    const test = ofAny(parseOperator(subject, operator, value, `${at}.${operator}`));
    return operator === "$ne" || operator === "$nin" ? (read: FieldValue) => !test(read) : test;
  });
  if (tests.length === 0) subject.faults.add(at, "must hold an operator such as $in");
  return (value) => tests.every((test) => test(value));
}

/** For a list, one matching element suffices. */
function ofAny(test: Test<Scalar>): Test<FieldValue> {
  return (value) => (typeof value === "object" && value !== null ? value.some(test) : test(value));
}

type Comparison = (value: string | number, bound: string | number) => boolean;

const comparisons = new Map<string, Comparison>([
  ["$lt", (value, bound) => value < bound],
  ["$lte", (value, bound) => value <= bound],
  ["$gt", (value, bound) => value > bound],
  ["$gte", (value, bound) => value >= bound],
]);

/** The test of an operator. The caller negates `$ne` and `$nin`. */
function parseOperator(subject: Subject, operator: string, operand: unknown, at: string): Test<Scalar> {
  const compare = comparisons.get(operator);
  if (compare) return ordered(subject, operand, at, compare);
  if (operator === "$ne") return equals(scalar(subject, operand, at));
  if (operator === "$regex") return matchesRegex(subject, operand, at);
  if (operator === "$in" || operator === "$nin") {
    if (!Array.isArray(operand)) subject.faults.add(at, "must be an array");
    const values: readonly unknown[] = Array.isArray(operand) ? operand : [];
    const known = new Set(values.map((value, index) => scalar(subject, value, `${at}.${index}`)));
    return (value) => known.has(value);
  }
  subject.faults.add(at, "unknown operator");
  return () => true;
}

const operandOf = { text: "a text", flag: "true, false", time: "an RFC 3339 timestamp" } as const;

/** The operand in the field's type; times become milliseconds. */
function scalar({ field, faults }: Subject, operand: unknown, at: string): Scalar {
  if (operand === null) return null;
  const time = field.kind === "time" && typeof operand === "string" ? parseTimestamp(operand) : undefined;
  if (time !== undefined) return time / 1_000;
  if (field.kind === "text" && typeof operand === "string") return operand;
  if (field.kind === "flag" && typeof operand === "boolean") return operand;
  faults.add(at, `must be ${operandOf[field.kind]} or null`);
  return null;
}

function equals(operand: Scalar): Test<Scalar> {
  return (value) => value === operand;
}

function ordered(subject: Subject, operand: unknown, at: string, compare: Comparison): Test<Scalar> {
  const bound = scalar(subject, operand, at);
  if (typeof bound === "string" || typeof bound === "number")
    return (value) => (typeof value === "string" || typeof value === "number") && compare(value, bound);
  subject.faults.add(at, subject.field.kind === "flag" ? "this field has no order" : "must not be null");
  return () => true;
}

function matchesRegex({ field, faults, budget }: Subject, pattern: unknown, at: string): Test<Scalar> {
  if (field.kind !== "text") faults.add(at, "only texts can be matched");
  if (typeof pattern !== "string") faults.add(at, "must be a text");
  if (field.kind !== "text" || typeof pattern !== "string") return () => true;
  try {
    const regex = new LinearRegex(pattern, budget);
    return (value) => typeof value === "string" && regex.test(value, budget);
  } catch (error) {
    if (!(error instanceof RegexSyntaxError || error instanceof RegexBudgetError)) throw error;
    faults.add(at, error.message);
    return () => true;
  }
}
