// What an operator should know of the signals at the service, as warnings of the status.
import type { Named, SignalWatchStatus } from "../../upload/signals/signal-watch.ts";
import type { UploadStatus } from "../../upload/uploader.ts";
import type { Warning } from "./status.ts";

export function signalWarnings(signals: UploadStatus["signals"] | undefined): Warning[] {
  if (!signals) return [];
  return [
    ...signals.refused.map(
      ({ input, reason }): Warning => ({
        level: "warn",
        message: `the service would not take the metadata of ${input}: ${reason}; its points are delivered`,
        remedy: "correct `signal` of this tag",
      }),
    ),
    ...(signals.watch ? watchWarnings(signals.watch) : []),
  ];
}

function watchWarnings({ error, kept, unconfigured, items }: SignalWatchStatus): Warning[] {
  return [
    ...(error
      ? [
          {
            level: "warn",
            message: `signals are not compared with the service: ${error.message}`,
            ...(error.hint !== undefined && { remedy: error.hint }),
          } satisfies Warning,
        ]
      : []),
    ...about(
      kept,
      "kept by the service as they are, though they were saved again",
      "compare with tagferry signals diff",
    ),
    ...about(
      { count: unconfigured.count, first: unconfigured.first.map((input) => ({ input, reason: "" })) },
      "at the service, but not configured; they are left as they are",
      "remove them there, or configure their tags again",
    ),
    ...about(
      items?.unfit,
      "not published, for something is missing",
      "add it to `signal` of the tag, or change service.signals.require",
    ),
    ...about(items?.edited, "published with what a person has edited there", "nothing, if that is meant"),
    ...about(items?.refused, "not published, the service refuses them", "correct `signal` of the tag"),
  ];
}

/** Named in one warning, and not in one each: there may be thousands. */
function about(named: Named | undefined, what: string, remedy: string): Warning[] {
  if (!named || named.count === 0) return [];
  const first = named.first.slice(0, 5).map(({ input, reason }) => (reason === "" ? input : `${input} (${reason})`));
  const more = named.count > first.length ? ` and ${named.count - first.length} more` : "";
  const signals = named.count === 1 ? "1 signal is" : `${named.count} signals are`;
  return [{ level: "warn", message: `${signals} ${what}: ${first.join(", ")}${more}`, remedy }];
}
