// Saves many signals or items in requests within the limits, and isolates refused ones.
import { z } from "zod";
import { type SaveSummary, saveSummaries } from "../../wire/results.ts";
import type { MethodCaller } from "../client/method-caller.ts";
import { inputsMember, isRefusal } from "../client/method-caller.ts";

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

/** Resolves with the refused entries, found by bisection. Rejects with the errors of `MethodCaller.call`. */
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
  const pages = pagesOf(all, caller.maxBytes(method) - caller.body(method, paramsOf([])).length, refused);
  for (let page = pages.pop(); page; page = pages.pop()) {
    try {
      const result = method === "admin.publishSignals" ? savedItems : savedSignals;
      saved(new Map(Object.entries(await caller.call(method, paramsOf(page), result, signal))));
    } catch (error) {
      const [only] = page;
      if (!isRefusal(error) || !only || refused.length >= mostRefused) throw error;
      if (page.length === 1) refused.push({ key: only.key, reason: error.message });
      else pages.push(page.slice(page.length >> 1), page.slice(0, page.length >> 1));
    }
  }
  return refused;
}

/** In reverse order: the last page is sent first. */
function pagesOf(all: readonly Saving[], room: number, refused: NotSaved[]): Saving[][] {
  const pages: Saving[][] = [];
  let page: Saving[] = [];
  let bytes = 0;
  for (const saving of all) {
    const size = Buffer.byteLength(JSON.stringify(saving.key)) + Buffer.byteLength(JSON.stringify(saving.view)) + 2;
    if (size > room) {
      refused.push({ key: saving.key, reason: `metadata of ${size} bytes are larger than a request may be` });
      continue;
    }
    if (bytes + size > room || page.length === mostPerRequest || pages.length === 0) {
      page = [];
      pages.push(page);
      bytes = 0;
    }
    page.push(saving);
    bytes += size;
  }
  return pages.reverse();
}
