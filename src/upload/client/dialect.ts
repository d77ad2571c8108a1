// What differs between the versions of the interface in the words for signals and items.
import type { ApiVersion } from "../../wire/method.ts";
import type { ItemSaveView, SignalSaveView } from "../../wire/signal-view.ts";

/** The dialect that signals, items and data are read in: version 1.0 has no method for it, 1.1beta1 added them to its words. */
export function readingVersion(version: ApiVersion): Exclude<ApiVersion, "1.0"> {
  return version === "1.0" ? "1.1beta1" : version;
}

/** A save view as `version` writes it: the current dialect says `valueType` for `type`. */
export function saveViewIn(version: ApiVersion, view: SignalSaveView | ItemSaveView): object {
  if (version !== "1.1") return view;
  const { type, ...others } = view;
  return { ...others, valueType: type };
}

/** The member of `integration.saveSignals` that holds the views. */
export function inputsMember(version: ApiVersion): "inputs" | "signalsByInput" {
  return version === "1.1" ? "signalsByInput" : "inputs";
}
