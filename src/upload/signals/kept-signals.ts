// The catalog as others than the agent read it: beside a running one, without a lock and without leaving anything behind.
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { type InputId, isInputId, type SignalId } from "../../core/point.ts";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import { signalAttributes } from "../../wire/signal-view.ts";

export interface KeptSignal {
  readonly metadata: PartialSignalMetadata | undefined;
  /** ID that the service gave. */
  readonly id: SignalId | undefined;
}

/** What the agent knows of its signals. Undefined: it has not run here yet, or its file cannot be read. */
export function readKeptSignals(path: string, target: string): ReadonlyMap<InputId, KeptSignal> | undefined {
  if (!existsSync(path)) return undefined;
  try {
    // Without a log beside it nobody has it open. Then nothing may be made beside it either: files of another user
    // would keep the agent from opening it.
    const url = pathToFileURL(path);
    if (!existsSync(`${path}-wal`)) url.searchParams.set("immutable", "1");
    const database = new DatabaseSync(url, { readOnly: true });
    try {
      const bound = database.prepare("SELECT name FROM target").get()?.["name"];
      const signals = new Map<InputId, KeptSignal>();
      for (const { input, metadata, id } of database.prepare("SELECT input, metadata, id FROM signals").iterate()) {
        if (typeof input !== "string" || !isInputId(input)) continue;
        signals.set(input, {
          metadata: typeof metadata === "string" ? signalAttributes.safeParse(JSON.parse(metadata)).data : undefined,
          // The service's own. Of another service it means nothing.
          id: typeof id === "string" && bound === target ? (id as SignalId) : undefined,
        });
      }
      return signals;
    } finally {
      database.close();
    }
  } catch {
    return undefined;
  }
}
