// Resource filters: `{"name": {"$in": ["a", "b"]}, "$or": [{…}, {…}]}` → a test of one resource.
import { parseTimestamp } from "../../wire/timestamp.ts";
import { isRecord } from "../call/check-frame.ts";
import { type Faults, RpcFault } from "../call/rpc-fault.ts";
import { LinearRegex, RegexBudgetError, RegexSyntaxError, type StepBudget } from "./linear-regex.ts";
import type { Field, FieldTable, FieldValue } from "./resource-fields.ts";

export type Predicate<Resource> = (resource: Resource) => boolean;

/** Bounds on what a filter may cost. */
const maxDepth = 16;
const maxConditions = 1_000;
/** Steps of compiling and matching regular expressions: a second or less. */
const maxRegexSteps = 20_000_000;

/** Reads the filter at `path`. With faults the result means nothing. Null and absent filters match everything. */
export function parseFilter<Resource>(
  filter: unknown,
  fields: FieldTable<Resource>,
  path: string,
  faults: Faults,
): Predicate<Resource> {
  let conditions = 0;
  const budget: StepBudget = { left: maxRegexSteps };

  function all(value: unknown, at: string, depth: number): Predicate<Resource> {
    if (value === undefined || value === null) return () => true;
    if (!isRecord(value)) {
      faults.add(at, "must be an object");
      return () => true;
    }
    if (depth > maxDepth) {
      faults.add(at, `must not be nested more than ${maxDepth} deep`);
      return () => true;
    }
    const parts = Object.entries(value).map(([key, operand]) => entry(key, operand, `${at}.${key}`, depth));
    return (resource) => parts.every((part) => part(resource));
  }

  function entry(key: string, operand: unknown, at: string, depth: number): Predicate<Resource> {
    if (key === "$and" || key === "$or") return list(key, operand, at, depth);
    if (++conditions > maxConditions) {
      if (conditions === maxConditions + 1) faults.add(path, `must not have more than ${maxConditions} conditions`);
      return () => true;
    }
    if (key.startsWith("$")) {
      faults.add(at, "unknown operator");
      return () => true;
    }
    const field = fields(key);
    if (!field) {
      faults.add(at, "cannot be filtered by this field");
      return () => true;
    }
    const test = parseCondition(field, operand, at, faults, budget);
    return (resource) => test(field.read(resource));
  }

  function list(key: "$and" | "$or", operand: unknown, at: string, depth: number): Predicate<Resource> {
    // A public client sends null for a list it lost; the hosted service takes it as no condition.
    if (operand === null) return () => true;
    if (!Array.isArray(operand)) {
      faults.add(at, "must be an array of filters");
      return () => true;
    }
    if ((conditions += operand.length) > maxConditions) {
      faults.add(path, `must not have more than ${maxConditions} conditions`);
      return () => true;
    }
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
      throw new RpcFault("invalidParams", { params: { [path]: [error.message] }, cause: error });
    }
  };
}

type Scalar = string | number | boolean | null;
type Test = (value: FieldValue) => boolean;

function parseCondition(field: Field<never>, operand: unknown, at: string, faults: Faults, budget: StepBudget): Test {
  if (!isRecord(operand)) return equals(scalar(field, operand, at, faults));
  const tests = Object.entries(operand).map(([operator, value]) =>
    operator === "$regex"
      ? matchesRegex(field, value, `${at}.${operator}`, faults, budget)
      : parseOperator(field, operator, value, `${at}.${operator}`, faults),
  );
  if (tests.length === 0) faults.add(at, "must hold an operator such as $in");
  return (value) => tests.every((test) => test(value));
}

function parseOperator(field: Field<never>, operator: string, operand: unknown, at: string, faults: Faults): Test {
  switch (operator) {
    case "$ne":
      return not(equals(scalar(field, operand, at, faults)));
    case "$in":
      return isIn(scalars(field, operand, at, faults));
    case "$nin":
      return not(isIn(scalars(field, operand, at, faults)));
    case "$lt":
      return ordered(field, operand, at, faults, (value, bound) => value < bound);
    case "$lte":
      return ordered(field, operand, at, faults, (value, bound) => value <= bound);
    case "$gt":
      return ordered(field, operand, at, faults, (value, bound) => value > bound);
    case "$gte":
      return ordered(field, operand, at, faults, (value, bound) => value >= bound);
    default:
      faults.add(at, "unknown operator");
      return () => true;
  }
}

function scalars(field: Field<never>, operand: unknown, at: string, faults: Faults): ReadonlySet<Scalar> {
  if (Array.isArray(operand))
    return new Set(operand.map((value: unknown, index) => scalar(field, value, `${at}.${index}`, faults)));
  faults.add(at, "must be an array");
  return new Set();
}

/** The operand as the field holds it: times become milliseconds. */
function scalar(field: Field<never>, operand: unknown, at: string, faults: Faults): Scalar {
  if (operand === null) return null;
  switch (field.kind) {
    case "text":
      if (typeof operand === "string") return operand;
      faults.add(at, "must be a text or null");
      return null;
    case "flag":
      if (typeof operand === "boolean") return operand;
      faults.add(at, "must be true, false or null");
      return null;
    case "time": {
      const time = typeof operand === "string" ? parseTimestamp(operand) : undefined;
      if (time === undefined) faults.add(at, "must be an RFC 3339 timestamp or null");
      return time === undefined ? null : time / 1_000;
    }
    default:
      return field.kind satisfies never;
  }
}

function equals(operand: Scalar): Test {
  return (value) => (isList(value) ? value.some((element) => element === operand) : value === operand);
}

function isIn(operands: ReadonlySet<Scalar>): Test {
  return (value) => (isList(value) ? value.some((element) => operands.has(element)) : operands.has(value));
}

function ordered(
  field: Field<never>,
  operand: unknown,
  at: string,
  faults: Faults,
  compare: (value: string | number, bound: string | number) => boolean,
): Test {
  const bound = scalar(field, operand, at, faults);
  if (typeof bound !== "string" && typeof bound !== "number") {
    faults.add(at, field.kind === "flag" ? "this field has no order" : "must not be null");
    return () => true;
  }
  const test = (value: Scalar) => (typeof value === "string" || typeof value === "number") && compare(value, bound);
  return (value) => (isList(value) ? value.some(test) : test(value));
}

function matchesRegex(field: Field<never>, pattern: unknown, at: string, faults: Faults, budget: StepBudget): Test {
  if (field.kind !== "text") faults.add(at, "only texts can be matched");
  if (typeof pattern !== "string") faults.add(at, "must be a text");
  if (field.kind !== "text" || typeof pattern !== "string") return () => true;
  try {
    const regex = new LinearRegex(pattern, budget);
    const test = (value: Scalar) => typeof value === "string" && regex.test(value, budget);
    return (value) => (isList(value) ? value.some(test) : test(value));
  } catch (error) {
    if (!(error instanceof RegexSyntaxError || error instanceof RegexBudgetError)) throw error;
    faults.add(at, error.message);
    return () => true;
  }
}

function not(test: Test): Test {
  return (value) => !test(value);
}

function isList(value: FieldValue): value is readonly string[] {
  return Array.isArray(value);
}
