// Rarely changing data for the page. Any client may request it at any time, so disk reads are bounded and cached.
import type { GapList } from "../agent/gaps/gap.ts";
import type { KnownCertificate } from "../core/commissioning.ts";
import { commandLine, reasonOf, remedyOf } from "../core/errors.ts";
import type { Clock, Runtime } from "../core/runtime.ts";
import { parseDuration } from "../lib/time/duration.ts";
import type { RejectReasons } from "../upload/rejects/reject-files.ts";
import type { History } from "./history.ts";

/** What the page of a tag shows; `place`, `template`: where it is written. */
interface ShownTag {
  readonly status: object;
  readonly place?: { readonly file: string };
  readonly template?: object;
  /** Reads the text there from the disk. Called at most every 10 s. Resolves with undefined if it cannot be read. */
  readonly readText?: () => Promise<string | undefined>;
}

export interface DetailOptions {
  /** Gaps of the last `sinceMs` milliseconds, at most `most`. */
  readonly gaps?: (sinceMs: number, most: number) => GapList;
  /** The latest refused points by reason. Called at most every 2 s. */
  readonly rejects?: () => Promise<RejectReasons>;
  /** Progress of the last retry of refused points; undefined: none. */
  readonly retry?: () => object | undefined;
  /** One tag; undefined: there is none. */
  readonly tag?: (source: string, tag: number, input: string) => ShownTag | undefined;
  /** Values of an input from the service over the last `spanMs` milliseconds. Cached for 30 s. */
  readonly series?: (input: string, spanMs: number) => Promise<object>;
  /** Certificates of devices. Called at most every 2 s. */
  readonly certificates?: () => Promise<readonly KnownCertificate[]>;
  /** Path of the configuration for displayed commands. Only clients on this machine see it. */
  readonly configFile?: string;
}

/** Response data by path. `local`: the client is on this machine. */
export type Details = Readonly<Record<string, (query: URLSearchParams, local: boolean) => unknown>>;

/** Placeholder for a path that is not shown. */
const elsewhere = "FILE";
const sharedMs = 2_000;
const gapsSinceMs = 7 * 86_400_000;
const mostGaps = 5_000;
const mostReasons = 50;
const mostInputs = 5;
const mostCertificates = 50;

/** Path of the configuration in a command for this client. Undefined: the command needs none. */
export function configFileFor({ configFile }: Pick<DetailOptions, "configFile">, local: boolean): string | undefined {
  return configFile === undefined || local ? configFile : elsewhere;
}

export function openDetails(options: DetailOptions, history: History, { clock }: Pick<Runtime, "clock">): Details {
  const { gaps } = options;
  const named = (local: boolean) => configFileFor(options, local);
  const rejects = new RecentValues<Promise<RejectReasons | undefined>>(sharedMs, clock);
  const certificates = new RecentValues<Promise<readonly KnownCertificate[] | undefined>>(sharedMs, clock);
  const series = seriesReader(options, clock);
  const texts = new RecentValues<Promise<string | undefined>>(textMs, clock);
  return {
    "/api/tag": async (query, local) => {
      const input = query.get("input") ?? "";
      const found = options.tag?.(query.get("source") ?? "", Number(query.get("tag")), input);
      if (!found) return { found: false };
      const { place, template, readText, ...rest } = found;
      const shown = place && { ...place, file: local ? place.file : elsewhere };
      const at = JSON.stringify([place, template]);
      const text = readText && (await texts.read(at, readText));
      const values = history.tag(input);
      return {
        found: true,
        ...rest,
        place: shown,
        text,
        history: { times: history.times.slice(history.times.length - values.length), values },
      };
    },
    "/api/series": (query) => series(query.get("input") ?? "", parseDuration(query.get("since") ?? "") ?? 0),
    "/api/gaps": (query) => {
      const since = parseDuration(query.get("since") ?? "") ?? gapsSinceMs;
      const most = Number(query.get("most") ?? 500);
      return gaps?.(since, most >= 1 && most <= mostGaps ? Math.floor(most) : 500) ?? { gaps: [] };
    },
    "/api/rejects": async (_query, local) => ({
      ...refused(await rejects.read("", async () => await options.rejects?.()), named(local)),
      retry: options.retry?.(),
    }),
    "/api/certificates": async (_query, local) =>
      waiting(await certificates.read("", async () => await options.certificates?.()), named(local)),
  };
}

/** Spans of `/api/series`, in milliseconds. Others are refused, so that answers can be shared. */
const spans = [3_600_000, 86_400_000, 7 * 86_400_000, 30 * 86_400_000];
const seriesMs = 30_000;
/** Requests of this page that wait for their turn at the service. */
const mostWaiting = 4;
const textMs = 10_000;

/** Reads values from the service. Never rejects: `ok: false` has the reason and the remedy. */
function seriesReader({ series }: DetailOptions, clock: Clock): (input: string, spanMs: number) => Promise<object> {
  const answers = new RecentValues<Promise<object>>(seriesMs, clock);
  let waitingRequests = 0;
  return async (input, spanMs) => {
    const key = `${spanMs} ${input}`;
    if (!series || !spans.includes(spanMs)) return { ok: false, reason: "since must be 1h, 1d, 7d or 30d" };
    if (waitingRequests >= mostWaiting && !answers.has(key))
      return { ok: false, reason: "too many requests wait for the service" };
    return await answers.read(key, async () => {
      waitingRequests++;
      try {
        return { ok: true, ...(await series(input, spanMs)) };
      } catch (error) {
        return { ok: false, reason: reasonOf(error), remedy: remedyOf(error) };
      } finally {
        waitingRequests--;
      }
    });
  };
}

function refused(counted: RejectReasons | undefined, configFile: string | undefined) {
  const { reasons = [], points = 0, unreadable = 0 } = counted ?? {};
  return {
    points,
    unreadable,
    reasons: reasons.slice(0, mostReasons).map(({ inputs, ...reason }) => ({
      ...reason,
      inputs: Object.fromEntries([...inputs].slice(0, mostInputs)),
      moreInputs: Math.max(0, inputs.size - mostInputs),
    })),
    moreReasons: Math.max(0, reasons.length - mostReasons),
    commands: {
      list: commandLine(["rejects", "list"], configFile),
      retry: commandLine(["rejects", "retry"], configFile),
    },
  };
}

function waiting(known: readonly KnownCertificate[] = [], configFile: string | undefined) {
  const refused = known.filter(({ state }) => state === "rejected");
  return {
    waiting: refused.slice(0, mostCertificates).map((certificate) => {
      const { thumbprint, sha256, subject, applicationUri, validFrom, validTo } = certificate;
      return {
        thumbprint,
        sha256,
        subject,
        applicationUri,
        validFrom: rfc3339(validFrom),
        validTo: rfc3339(validTo),
        command: commandLine(["trust", "accept", thumbprint], configFile),
      };
    }),
    more: Math.max(0, refused.length - mostCertificates),
  };
}

/** Converts times of certificates. Unparsable ones stay as they are. */
function rfc3339(time: string): string {
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? time : new Date(ms).toISOString();
}

/** Any client may ask for any key, so only so many values are kept. */
const mostKept = 32;

/** The latest values by key, each shared for `ms` milliseconds. A promise that rejects is not kept. */
export class RecentValues<T> {
  readonly #ms: number;
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #kept = new Map<string, { readonly value: T; readonly at: number }>();

  constructor(ms: number, clock: Clock) {
    this.#ms = ms;
    this.#clock = clock;
  }

  has(key: string): boolean {
    this.expire();
    return this.#kept.has(key);
  }

  read(key: string, make: () => T): T {
    this.expire();
    const known = this.#kept.get(key);
    if (known) return known.value;
    const kept = { value: make(), at: this.#clock.monotonic() };
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size >= mostKept) this.#kept.delete(oldest);
    this.#kept.set(key, kept);
    if (kept.value instanceof Promise)
      kept.value.catch(() => {
        if (this.#kept.get(key) === kept) this.#kept.delete(key);
      });
    return kept.value;
  }

  clear(): void {
    this.#kept.clear();
  }

  /** Drops expired values, which may be large. */
  expire(): void {
    for (const [key, { at }] of this.#kept) {
      if (this.#clock.monotonic() - at < this.#ms) return;
      this.#kept.delete(key);
    }
  }
}
