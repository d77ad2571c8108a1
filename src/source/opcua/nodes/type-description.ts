// Finds the dictionary in which a server describes an encoding, and the name that the type has there (OPC 10000-5, 9.6
// before 1.04): the encoding has a description, which is a component of the dictionary.
import type { NodeId, Services } from "../session/services.ts";
import type { Ua } from "../session/stack.ts";

const hasDescription = "i=39";
const hasComponent = "i=47";

interface Description {
  /** NodeId of the dictionary. */
  readonly dictionary: string;
  /** Of the type, in it. */
  readonly name: string;
  readonly xml: string;
}

/** Undefined where the server has none. Rejects with `SOURCE_*` when it cannot be asked. */
export async function findDescription(
  ua: Ua,
  services: Services,
  encoding: NodeId,
  signal: AbortSignal,
): Promise<Description | undefined> {
  const [[description] = []] = await services.forward([encoding], hasDescription, signal);
  if (!description) return undefined;
  const [[dictionary] = []] = await services.inverse([description], hasComponent, signal);
  if (!dictionary) return undefined;
  const [name, content] = await services.read(
    [description, dictionary].map((nodeId) => ({ nodeId, attributeId: ua.AttributeIds.Value })),
    signal,
  );
  const [text, bytes]: unknown[] = [name?.value?.value, content?.value?.value];
  if (typeof text !== "string" || !(bytes instanceof Uint8Array)) return undefined;
  return { dictionary: dictionary.toString(), name: text, xml: new TextDecoder().decode(bytes) };
}
