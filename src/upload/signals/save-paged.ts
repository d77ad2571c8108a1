// Saves many signals or items in requests within the limits, and isolates refused ones.
import { z } from "zod";
import { type SaveSummary, saveSummaries } from "../../wire/results.ts";
import type { MethodCaller } from "../client/method-caller.ts";
import { inputsMember, isRefusal, isTooLong } from "../client/method-caller.ts";

export interface Saving {
  /** Input ID or Signal ID. */
  readonly key: string;
  /** In the dialect of the current version. */
  readonly view: object;
}

export interface NotSaved {
  readonly key: string;
  readonly reason: string;
}

export interface SavePagedOptions {
  readonly method: "integration.saveSignals" | "admin.publishSignals";
  readonly createOnly: boolean;
  /** Called after each request with the summaries of the service. */
  readonly saved: (summaries: ReadonlyMap<string, SaveSummary>) => void;
}

/** Public clients publish as many at a time. */
const mostPerRequest = 500;
/** With more separate refusals, single signals are not the cause. */
const mostRefused = 25;

const savedSignals = z.object({ signalsByInput: saveSummaries }).transform(({ signalsByInput }) => signalsByInput);
const savedItems = z.object({ itemsBySignal: saveSummaries }).transform(({ itemsBySignal }) => itemsBySignal);

interface SizedSaving extends Saving {
  readonly bytes: number;
}

/**
 * Resolves with the refused entries, found by bisection. Rejects with the errors of `MethodCaller.call`. If a request is
 * too long, or cut off, it and all later ones are at most half as long.
 */
export async function savePaged(
  caller: MethodCaller,
  all: readonly Saving[],
  { method, createOnly, saved }: SavePagedOptions,
  signal: AbortSignal,
): Promise<readonly NotSaved[]> {
  const paramsOf = (page: readonly Saving[]) => ({
    integration: caller.integration,
    [method === "admin.publishSignals" ? "itemsBySignal" : inputsMember(caller.version)]: Object.fromEntries(
      page.map(({ key, view }) => [key, view]),
    ),
    createOnly,
  });
  const refused: NotSaved[] = [];
  let room = caller.maxBytes(method) - caller.body(method, paramsOf([])).length;
  /** The last group is next. */
  const groups = [fitting(all, room, refused)];
  for (let group = groups.pop(); group; group = groups.pop()) {
    const { page, bytes } = pageOf(group, room);
    if (page.length < group.length) groups.push(group.slice(page.length));
    if (page.length === 0) continue;
    try {
      const result = method === "admin.publishSignals" ? savedItems : savedSignals;
      saved(new Map(Object.entries(await caller.call(method, paramsOf(page), result, signal))));
    } catch (error) {
      const [only] = page;
      const isOne = page.length === 1;
      if (isTooLong(error) && !isOne) {
        room = bytes >> 1;
        groups.push(page);
        continue;
      }
      if (!isRefusal(error) || !only || refused.length >= mostRefused) throw error;
      if (isOne) refused.push({ key: only.key, reason: error.message });
      else groups.push(page.slice(page.length >> 1), page.slice(0, page.length >> 1));
    }
  }
  return refused;
}

/** Entries that fit into a request of `room` bytes. Others are refused. */
function fitting(all: readonly Saving[], room: number, refused: NotSaved[]): readonly SizedSaving[] {
  return all.flatMap((saving) => {
    const bytes = Buffer.byteLength(JSON.stringify(saving.key)) + Buffer.byteLength(JSON.stringify(saving.view)) + 2;
    if (bytes <= room) return [{ ...saving, bytes }];
    refused.push({ key: saving.key, reason: `metadata of ${bytes} bytes are larger than a request may be` });
    return [];
  });
}

/** The first entries of `group`, as many as fit into `room` bytes, and at least one. */
function pageOf(group: readonly SizedSaving[], room: number) {
  let bytes = 0;
  let end = 0;
  for (const next of group.slice(0, mostPerRequest)) {
    if (end > 0 && bytes + next.bytes > room) break;
    bytes += next.bytes;
    end++;
  }
  return { page: group.slice(0, end), bytes };
}
