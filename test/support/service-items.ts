// Publishes items with data in a local service, from signals of the same name, and calls API version 1.1.
import { integration, type TestService } from "./service.ts";

type Points = readonly (readonly [time: string, value: number])[];

/** The result of a call at version 1.1. Rejects with the answer when it is an error. */
export async function resultOf(
  service: TestService,
  method: string,
  params: object,
  // Tests access and compare any member.
): Promise<Record<string, any>> /* oxlint-disable-line typescript/no-explicit-any */ {
  const { body } = await service.call(method, params, { version: "1.1" });
  if (!body?.result) throw new Error(JSON.stringify(body));
  return body.result;
}

/** Stores the points and publishes each signal with `attributes`. Resolves with a function from names to Item IDs. */
export async function storeItems(
  service: TestService,
  points: Readonly<Record<string, Points>>,
  attributes: Readonly<Record<string, object>> = {},
): Promise<(name: string) => string> {
  const names = Object.keys(points);
  const times = [...new Set(Object.values(points).flatMap((list) => list.map(([time]) => time)))];
  const series = Object.fromEntries(
    names.map((name) => {
      const values = new Map(points[name]);
      return [name, times.map((time) => values.get(time) ?? null)];
    }),
  );
  const { signalsByInput } = await resultOf(service, "integration.insert", { integration, data: { times, series } });
  const view = (name: string) => ({ name, valueType: "numeric", sourceType: "measurement", ...attributes[name] });
  const { itemsBySignal } = await resultOf(service, "admin.publishSignals", {
    integration,
    itemsBySignal: Object.fromEntries(names.map((name) => [signalsByInput[name].id, view(name)])),
  });
  return (name) => String(itemsBySignal[signalsByInput[name].id].id);
}
