// Which signals go into the next request that saves metadata, as they are written there.
import type { InputId } from "../../core/point.ts";
import type { ApiVersion } from "../../wire/method.ts";
import { signalSaveView } from "../../wire/signal-view.ts";
import { saveViewIn } from "../client/dialect.ts";
import type { Catalog } from "./catalog.ts";

export interface BatchedSignal {
  readonly input: InputId;
  readonly hash: string;
  /** `"input":{…}` */
  readonly json: string;
}

/** Answers grow with the number of signals; 10,000 make 3 MB of answer at most. */
const mostPerRequest = 10_000;
/** As many pending signals as have room in `room` bytes. Those that can be in no request are marked as refused. */
export function nextBatch(catalog: Catalog, apiVersion: ApiVersion, room: number): BatchedSignal[] {
  const batch: BatchedSignal[] = [];
  let bytes = 0;
  for (const input of Array.from(catalog.pending)) {
    const entry = catalog.entry(input);
    if (entry?.hash === undefined || entry.signal === undefined) continue;
    const view = signalSaveView.safeParse({ ...entry.signal, name: entry.signal.name ?? input });
    if (!view.success) {
      const [issue] = view.error.issues;
      catalog.markRefused(
        input,
        entry.hash,
        `${issue?.path.join(".") ?? "metadata"} ${issue?.message ?? "is invalid"}`,
      );
      continue;
    }
    const json = `${JSON.stringify(input)}:${JSON.stringify(saveViewIn(apiVersion, view.data))}`;
    const size = Buffer.byteLength(json) + 1;
    if (bytes + size > room) {
      if (batch.length > 0) break;
      catalog.markRefused(input, entry.hash, `metadata of ${size} bytes are larger than a request may be`);
      continue;
    }
    bytes += size;
    batch.push({ input, hash: entry.hash, json });
    if (batch.length === mostPerRequest) break;
  }
  return batch;
}
