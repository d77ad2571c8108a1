// The words for states, for status page, `tagferry status`, `tagferry gaps` and help of metrics. The page loads them as
// `words.js`, so no other list of them exists. Counts and lists for texts of the status.
import type { Gap } from "../gaps/gap.ts";
import type { Level, SourceState, UploadState } from "./status.ts";

interface Word {
  readonly word: string;
  readonly level: Level;
}

interface CauseWord {
  readonly word: string;
  readonly remedy: string;
}

export const words = {
  source: {
    opening: { word: "connecting", level: "note" },
    online: { word: "online", level: "good" },
    waiting: { word: "offline", level: "warn" },
    stopped: { word: "stopped", level: "note" },
    standby: { word: "standby", level: "note" },
  } satisfies Record<SourceState, Word>,
  delivery: {
    delivering: { word: "delivering", level: "good" },
    retrying: { word: "service unreachable", level: "warn" },
    held: { word: "held", level: "bad" },
    stopped: { word: "stopped", level: "warn" },
    standby: { word: "standby", level: "note" },
  } satisfies Record<UploadState, Word>,
  gap: {
    open: { word: "open", level: "warn" },
    filling: { word: "filling", level: "warn" },
    filled: { word: "filled", level: "good" },
    partly: { word: "partly filled", level: "bad" },
    lost: { word: "lost", level: "bad" },
  } satisfies Record<Gap["state"], Word>,
  gapCause: {
    agentDown: { word: "agent down", remedy: "let the system start the agent: tagferry install-service" },
    disconnected: { word: "not connected", remedy: "see the error of the source" },
    stopped: { word: "source stopped", remedy: "" },
    takeover: { word: "takeover", remedy: "" },
    bad: { word: "no usable value", remedy: "see the tag and the device" },
    refused: { word: "no Input ID", remedy: "change input or maxInputs of the tag" },
    overflow: {
      word: "discarded by the broker or server",
      remedy: "let the device or the broker keep more, or read more often",
    },
    buffer: { word: "not stored", remedy: "free disk space or repair the disk" },
  } satisfies Record<Gap["cause"], CauseWord>,
  quality: {
    good: { word: "good", level: "good" },
    uncertain: { word: "uncertain", level: "warn" },
    bad: { word: "no usable value", level: "bad" },
    none: { word: "no reading yet", level: "note" },
  },
} as const;

/** The word for a state that may come from another version of the agent. */
export function wordOf(list: Readonly<Record<string, { readonly word: string }>>, state: string): string {
  return Object.hasOwn(list, state) ? (list[state]?.word ?? state) : state;
}

/** `1 point`, `2 points`, `12,000 points`. */
export function counted(n: number, what: string): string {
  return `${groupedDigits(n)} ${what}${n === 1 ? "" : "s"}`;
}

/** `1 point waits`, `2 points wait`. */
export function pointsWait(n: number): string {
  return `${counted(n, "point")} ${n === 1 ? "waits" : "wait"}`;
}

/** A whole number with separators: `12,000`. */
export function groupedDigits(n: number): string {
  return String(n).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** One unit, which does not change each second: `50 s`, `12 min`, `41 h`. */
export function roughSpan(ms: number): string {
  if (ms < 90_000) return `${Math.max(10, Math.ceil(ms / 10_000) * 10)} s`;
  if (ms < 90 * 60_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 48 * 3_600_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

/** The first `most` names, and how many more there are. */
export function firstOf(count: number, first: readonly string[], most = 5): string {
  const named = first.slice(0, most);
  return `${named.join(", ")}${count > named.length ? ` and ${count - named.length} more` : ""}`;
}
