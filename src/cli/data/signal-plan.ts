// The findings and the plan of `tagferry signals`, as a table and as JSON. Pure.

import { visible } from "../../lib/text/visible.ts";
import type { AttributeChange } from "../../upload/signals/attribute-map.ts";
import type { PlannedItem } from "../../upload/signals/item-publisher.ts";
import type { SignalSaveView } from "../../wire/signal-view.ts";
import { columns, count } from "../terminal/text.ts";

export interface SignalStep {
  readonly input: string;
  /** `leave`: differs, but createOnly forbids changing it. */
  readonly action: "create" | "change" | "leave";
  readonly changes: readonly AttributeChange[];
  readonly view: SignalSaveView;
}

export interface SignalPlan {
  /** Undefined: the command does not save. */
  readonly steps: readonly SignalStep[] | undefined;
  readonly same: number;
  readonly unconfigured: readonly string[];
  /** Signals that the service lists without an Input ID. */
  readonly nameless: number;
  /** Undefined: the command does not publish. */
  readonly items: readonly PlannedItem[] | undefined;
}

export function toSave({ steps }: SignalPlan): readonly SignalStep[] {
  return steps?.filter(({ action }) => action !== "leave") ?? [];
}

export function planJson({ steps, same, unconfigured, nameless, items }: SignalPlan): object {
  return {
    ...(steps && {
      signals: steps.map(({ input, action, changes }) => ({ input, action, changes: changes.map(asJson) })),
      same,
    }),
    unconfigured,
    nameless,
    ...(items && { items: items.map(itemJson) }),
  };
}

export function planLines(plan: SignalPlan): readonly string[] {
  const { steps, same, unconfigured, nameless, items } = plan;
  return [
    ...(steps ? stepLines(steps, toSave(plan).length, same) : []),
    ...(items ? itemLines(items) : []),
    ...(unconfigured.length > 0
      ? [
          `${count(unconfigured.length, "signal")} at the service not configured, never touched:`,
          ...columns(unconfigured.map((input) => [input])),
        ]
      : []),
    ...(nameless > 0
      ? [`${count(nameless, "signal")} at the service without an Input ID: nothing can be said of them`]
      : []),
  ];
}

function stepLines(steps: readonly SignalStep[], saves: number, same: number): readonly string[] {
  const created = steps.filter(({ action }) => action === "create").length;
  const left = steps.length - saves;
  return [
    ...columns(steps.flatMap(stepRows)),
    [
      `${count(saves, "signal")} to save (${created} new, ${saves - created} changed)`,
      ...(left > 0 ? [`${left} left as they are there (createOnly)`] : []),
      `${same} the same`,
    ].join(", "),
  ];
}

function stepRows({ input, action, changes }: SignalStep): string[][] {
  if (changes.length === 0) return [[input, action]];
  return changes.map((change, i) => [...(i === 0 ? [input, action] : ["", ""]), ...changeCells(change)]);
}

function changeCells({ attribute, ours, theirs }: AttributeChange): [string, string] {
  return [attribute, `${shown(theirs)} → ${shown(ours)}`];
}

function itemLines(items: readonly PlannedItem[]): readonly string[] {
  const rows = items.flatMap(itemRows);
  const of = (...actions: readonly string[]) => items.filter(({ plan }) => actions.includes(plan.action)).length;
  return [
    ...columns(rows),
    [
      `${count(of("create", "update"), "item")} to publish (${of("create")} new, ${of("update")} changed)`,
      `${of("keep")} left as they are`,
      ...(of("unfit") > 0 ? [`${of("unfit")} not fit to be published (service.signals.require)`] : []),
      ...(of("hidden") > 0 ? [`${of("hidden")} that the service does not show`] : []),
    ].join(", "),
    ...(of("unfit") > 0
      ? [
          "  what they miss goes into signal: of the tag, its source or defaults; service.signals.require: [] asks for nothing",
        ]
      : []),
  ];
}

function itemRows({ input, plan }: PlannedItem): string[][] {
  switch (plan.action) {
    case "create":
      return [[input, "publish"]];
    case "unfit":
      return [
        [input, "unfit", plan.missing.length > 0 ? `missing: ${plan.missing.join(", ")}` : "metadata are invalid"],
      ];
    case "hidden":
      return [[input, "hidden"]];
    case "update":
    case "keep": {
      const changes = plan.action === "update" ? plan.changes.map((change) => ["update", ...changeCells(change)]) : [];
      const edited = plan.edited.map(({ attribute, theirs }) => ["edited", attribute, `${shown(theirs)} stays`]);
      return [...changes, ...edited].map((cells, i) => [i === 0 ? input : "", ...cells]);
    }
  }
}

function itemJson({ input, stored, plan }: PlannedItem): object {
  return {
    input,
    signal: stored.id,
    ...(stored.itemId !== undefined && { item: stored.itemId }),
    action: plan.action,
    ...(plan.action === "update" && { changes: plan.changes.map(asJson) }),
    ...((plan.action === "update" || plan.action === "keep") && { edited: plan.edited.map(asJson) }),
    ...(plan.action === "unfit" && { missing: plan.missing }),
  };
}

/** JSON null stands for a missing attribute. */
function asJson({ attribute, ours, theirs }: AttributeChange): object {
  return { attribute, here: ours ?? null, there: theirs ?? null };
}

function shown(value: unknown): string {
  return value === undefined ? "none" : visible(JSON.stringify(value));
}
