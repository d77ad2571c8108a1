// Rarely changing data for the page. Any client may request it at any time, so disk reads are bounded and cached.
import type { GapList } from "../agent/gaps/gap.ts";
import type { KnownCertificate } from "../core/commissioning.ts";
import { reasonOf, remedyOf } from "../core/errors.ts";
import type { Clock, Runtime } from "../core/runtime.ts";
import { commandLine } from "../lib/text/command-line.ts";
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
  const rejects = shared(async () => await options.rejects?.(), clock);
  const certificates = shared(async () => (await options.certificates?.()) ?? [], clock);
  const series = new SeriesCache(options, clock);
  const texts = new RecentAnswers<string | undefined>(textMs, clock);
  return {
    "/api/tag": async (query, local) => {
      const input = query.get("input") ?? "";
      const found = options.tag?.(query.get("source") ?? "", Number(query.get("tag")), input);
      if (!found) return { found: false };
      const { place, template, readText, ...rest } = found;
      const shown = place && { ...place, file: local ? place.file : elsewhere };
      const at = JSON.stringify([place, template]);
      const text = readText && (await (texts.get(at) ?? texts.set(at, readText())));
      const values = history.tag(input);
      return {
        found: true,
        ...rest,
        place: shown,
        text,
        history: { times: history.times.slice(history.times.length - values.length), values },
      };
    },
    "/api/series": (query) => series.read(query.get("input") ?? "", parseDuration(query.get("since") ?? "") ?? 0),
    "/api/gaps": (query) => {
      const since = parseDuration(query.get("since") ?? "") ?? gapsSinceMs;
      const most = Number(query.get("most") ?? 500);
      return gaps?.(since, most >= 1 && most <= mostGaps ? Math.floor(most) : 500) ?? { gaps: [] };
    },
    "/api/rejects": async (_query, local) => ({
      ...refused(await rejects(), named(local)),
      retry: options.retry?.(),
    }),
    "/api/certificates": async (_query, local) => waiting(await certificates(), named(local)),
  };
}

/** Spans of `/api/series`, in milliseconds. Others are refused, so that answers can be shared. */
const spans = [3_600_000, 86_400_000, 7 * 86_400_000, 30 * 86_400_000];
const seriesMs = 30_000;
/** Requests of this page that wait for their turn at the service. */
const mostWaiting = 4;
const textMs = 10_000;

class SeriesCache {
  readonly #options: DetailOptions;
  readonly #answers: RecentAnswers<object>;
  #waiting = 0;

  constructor(options: DetailOptions, clock: Clock) {
    this.#options = options;
    this.#answers = new RecentAnswers(seriesMs, clock);
  }

  /** Never rejects: `ok: false` has the reason and the remedy. */
  read(input: string, spanMs: number): Promise<object> {
    const key = `${spanMs} ${input}`;
    const known = this.#answers.get(key);
    if (known) return known;
    const { series } = this.#options;
    if (!series || !spans.includes(spanMs))
      return Promise.resolve({ ok: false, reason: "since must be 1h, 1d, 7d or 30d" });
    if (this.#waiting >= mostWaiting)
      return Promise.resolve({ ok: false, reason: "too many requests wait for the service" });
    this.#waiting++;
    const answer = series(input, spanMs)
      .then(
        (values) => ({ ok: true, ...values }),
        (error: unknown) => ({ ok: false, reason: reasonOf(error), remedy: remedyOf(error) }),
      )
      .finally(() => this.#waiting--);
    return this.#answers.set(key, answer);
  }
}

/** Any client may ask for any key, so only so many answers are kept. */
const mostAnswers = 32;

/** The latest answers by key, each shared for `ms` milliseconds. */
class RecentAnswers<T> {
  readonly #ms: number;
  readonly #clock: Clock;
  readonly #answers = new Map<string, { readonly at: number; readonly answer: Promise<T> }>();

  constructor(ms: number, clock: Clock) {
    this.#ms = ms;
    this.#clock = clock;
  }

  get(key: string): Promise<T> | undefined {
    this.#drop(({ at }) => this.#clock.monotonic() - at > this.#ms);
    return this.#answers.get(key)?.answer;
  }

  /** Returns `answer`. */
  set(key: string, answer: Promise<T>): Promise<T> {
    this.#drop(() => this.#answers.size >= mostAnswers);
    this.#answers.set(key, { at: this.#clock.monotonic(), answer });
    return answer;
  }

  /** Drops answers, oldest first, as long as `isOver`. */
  #drop(isOver: (oldest: { readonly at: number }) => boolean): void {
    for (const [key, oldest] of this.#answers) {
      if (!isOver(oldest)) return;
      this.#answers.delete(key);
    }
  }
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

function waiting(known: readonly KnownCertificate[], configFile: string | undefined) {
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

/** Caches the result of `make` for `ms` milliseconds. */
export function cachedFor<T>(ms: number, make: () => T, clock: Clock): CachedValue<T> {
  let last: { readonly value: T; readonly at: number } | undefined;
  const expire = () => {
    if (last && clock.monotonic() - last.at >= ms) last = undefined;
  };
  return {
    read: () => {
      expire();
      last ??= { value: make(), at: clock.monotonic() };
      return last.value;
    },
    forget: (value) => {
      if (value === undefined || last?.value === value) last = undefined;
    },
    expire,
  };
}

interface CachedValue<T> {
  readonly read: () => T;
  /** Drops `value` if it is still cached; without an argument, drops any value. */
  readonly forget: (value?: T) => void;
  /** Drops an expired value, which is large with many tags. */
  readonly expire: () => void;
}

/** Shares one read among all requests within 2 s and while it is in progress. A failure is not cached. */
function shared<T>(make: () => Promise<T>, clock: Clock): () => Promise<T> {
  const cache = cachedFor(sharedMs, make, clock);
  return () => {
    const answer = cache.read();
    answer.catch(() => cache.forget(answer));
    return answer;
  };
}
