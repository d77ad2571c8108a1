// integration.insert: stores the points of a frame, and creates signals for Input IDs that have none.
import { signalSaveView } from "../../wire/signal-view.ts";
import type { MethodCall } from "../call/call.ts";
import { checkFrame } from "../call/check-frame.ts";
import { Faults, RpcFault } from "../call/rpc-fault.ts";
import { savedAttributes } from "../store/resource.ts";
import { ownIntegration } from "./own-integration.ts";

export function insert(call: MethodCall): object {
  const { store, now, params } = call;
  const faults = new Faults();
  const integration = ownIntegration(call, faults);
  const frame = checkFrame(params["data"], "data", faults);
  faults.throwIfAny();
  const nowMs = Math.floor(now / 1_000);
  const signalsByInput: Record<string, object> = {};
  const refused = call.refusedInputs.filter((input) => frame.has(input));
  store.transaction(() => {
    for (const [input, columnsOf] of frame) {
      if (refused.includes(input)) continue;
      const known = store.resources.signalByInput(integration, input);
      const signal =
        known ??
        store.resources.createSignal(
          integration,
          input,
          savedAttributes(signalSaveView.parse({}), input, undefined),
          nowMs,
        );
      const columns = columnsOf();
      if (columns.times.length > 0) store.points.write(signal.number, columns);
      // No `updated` here: clients refuse a summary with members they do not know.
      signalsByInput[input] = { id: signal.id, created: known === undefined };
    }
  });
  if (refused.length > 0)
    throw new RpcFault("partialFailure", {
      partialResult: { signalsByInput },
      invalidResources: refused.map((id) => ({ id, type: "signals", message: "refused on request" })),
    });
  return { signalsByInput };
}
