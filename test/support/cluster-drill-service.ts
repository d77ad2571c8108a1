// The service of the cluster drill: stores what it receives, and counts requests with points that it already has.
import { type Behaviour, ScriptedService } from "./scripted-service.ts";

export interface DrillService extends AsyncDisposable {
  readonly url: string;
  /** Requests most of whose points were stored before with the same values. */
  readonly repeats: number;
  /** The value of each `input time`. */
  readonly stored: ReadonlyMap<string, number>;
  /** Whether the value was ever stored for the input. Cheap: the proxies between agents and servers run in this process. */
  has(input: string, value: number): boolean;
  /** The shortest interval between two requests of a method in milliseconds, by method. */
  spacing(): Readonly<Record<string, number>>;
  /** Starts of inserts, on the monotonic clock in milliseconds. */
  readonly inserts: readonly number[];
  /** Resolves with the start of the next insert, on the monotonic clock in milliseconds. */
  nextInsert(): Promise<number>;
  /** Refuses connections between the two calls. */
  pause(): void;
  resume(): void;
  /** Stores the next insert, and closes its connection instead of answering. */
  cutNext(): Promise<void>;
}

const insert = "integration.insert";

export async function drillService(): Promise<DrillService> {
  const service = await ScriptedService.open();
  const starts = new Map<string, number[]>();
  let waiting = Promise.withResolvers<number>();
  const values = new Set<string>();
  let repeats = 0;
  let cut: PromiseWithResolvers<void> | undefined;

  const behaviour: Behaviour = ({ request, response, accept }) => {
    const { start } = service.seen.pop()!;
    const { method, params } = request;
    const ofMethod = starts.get(method) ?? [];
    starts.set(method, ofMethod);
    ofMethod.push(start);
    let points = 0;
    let known = 0;
    for (const [input, column] of Object.entries(params.data?.series ?? {}))
      for (const [i, value] of column.entries()) {
        if (value === null) continue;
        points++;
        values.add(`${input} ${value}`);
        if (service.stored.get(`${input} ${params.data?.times[i]}`) === value) known++;
      }
    if (known > points / 2) repeats++;
    const result = accept();
    if (method === insert) {
      waiting.resolve(start);
      waiting = Promise.withResolvers();
      if (cut) {
        cut.resolve();
        cut = undefined;
        response.destroy();
        return;
      }
    }
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id: request.id, result }));
  };
  service.otherwise = behaviour;
  return {
    url: service.url,
    get repeats() {
      return repeats;
    },
    has: (input, value) => values.has(`${input} ${value}`),
    get inserts() {
      return starts.get(insert) ?? [];
    },
    get stored() {
      return service.stored;
    },
    spacing() {
      // Sorted, because a large body may arrive after a small one whose headers came later.
      const closest = (times: readonly number[]) => {
        const sorted = times.toSorted((a, b) => a - b);
        return Math.min(...sorted.slice(1).map((start, i) => start - sorted[i]!));
      };
      return Object.fromEntries(Array.from(starts, ([method, times]) => [method, Math.floor(closest(times))]));
    },
    nextInsert: () => waiting.promise,
    pause() {
      service.atHead = (_, response) => {
        response.destroy();
        return true;
      };
    },
    resume() {
      service.atHead = undefined;
    },
    cutNext() {
      cut = Promise.withResolvers();
      return cut.promise;
    },
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}
