// Which addresses of an open source would be refused, since another one feeds their Input ID. For `check --online`.
import { refusalWarnings, refusedInputsOf } from "../../agent/status/refused-inputs.ts";
import type { Warning } from "../../agent/status/status.ts";
import { ambiguitiesOf } from "../../config/ambiguities.ts";
import type { ConfiguredSource } from "../../config/config.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Source } from "../../core/source.ts";
import type { InputOwners } from "../../mapping/input-owners.ts";
import { openMapping } from "../../mapping/source-mapping.ts";

/** How long it listens where only values tell the addresses, in milliseconds. */
const listenMs = 2_000;

/**
 * Takes the addresses that the source lists. Where it lists none and several can come to one Input ID, it reads for 2 s;
 * nothing is acknowledged. Rejects as `Source.deliveries` does.
 */
export async function refusedAddresses(
  source: ConfiguredSource,
  opened: Source,
  owners: InputOwners,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<readonly Warning[]> {
  const { name, rules } = source;
  const ambiguities = ambiguitiesOf(source);
  // Not disposed: its Input IDs stay taken for the sources that are asked at the same time.
  const mapping = openMapping({ source: name, rules, catalog: { describe() {} }, owners, ambiguities }, runtime);
  if (opened.addresses) mapping.claim(opened.addresses);
  else if (ambiguities.size > 0) {
    const enough = new AbortController();
    const stop = AbortSignal.any([signal, enough.signal]);
    const over = runtime.clock.sleep(listenMs, stop).then(
      () => enough.abort(new Error("listened for long enough")),
      () => {},
    );
    try {
      for await (const delivery of opened.deliveries(stop)) mapping.map(delivery);
    } finally {
      enough.abort(new Error("no longer listening"));
      await over;
    }
  }
  return refusalWarnings(refusedInputsOf(name, mapping));
}
