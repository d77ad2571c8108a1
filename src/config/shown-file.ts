// A configuration file as it may be given away: without comments, secrets, and names and passwords in addresses.
import { isMap, isPair, isScalar, isSeq, parseDocument, visit, type YAMLMap } from "yaml";
import { z } from "zod";
import type { Driver } from "../core/source.ts";
import { withoutUser } from "../lib/without-user.ts";
import { sections } from "./file-schema.ts";
import { isSecret, schemasAt } from "./schema-walk.ts";

/** Of keys that are misspelled, or in files that another version wrote: what their names let fear. */
const fearful = /pas+w|pass|pwd|secret|token|credential|private|api_?key|auth/i;
/** References give nothing away, but what stands for them where there is nothing may. */
const reference = /^\$\{[^}]*\}$/;

/** Undefined: `text` is no YAML, so that nobody knows what in it is a secret. */
export function shownFile(text: string, drivers: readonly Driver[]): string | undefined {
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false });
  if (document.errors.length > 0) return undefined;
  const own = z.strictObject(sections);
  const types = new Map<string, string>();
  const sources = document.get("sources");
  if (isMap(sources))
    for (const { key, value } of sources.items) if (isMap(value)) types.set(String(key), typeOf(value));
  document.commentBefore = null;
  document.comment = null;
  visit(document, {
    Collection(_key, node) {
      uncomment(node);
    },
    Alias(_key, node) {
      uncomment(node);
    },
    Scalar(key, node, ancestors) {
      uncomment(node);
      if (key === "key") return;
      const path = pathTo([...ancestors, node]);
      const driver = drivers.find(({ type }) => path[0] === "sources" && type === types.get(String(path[1])));
      const schemas = driver ? schemasAt(driver.schema, path.slice(2)) : schemasAt(own, path);
      const hidden =
        schemas.some(isSecret) ||
        (schemas.length === 0 && fearful.test(String(path.findLast((part) => typeof part === "string"))));
      const written = typeof node.value === "string" ? node.value : undefined;
      if (hidden) node.value = written !== undefined && reference.test(written) ? withoutDefault(written) : "***";
      else if (written !== undefined) node.value = withoutUser(written);
    },
  });
  // Texts that were folded over lines may be other ones now.
  visit(document, (_key, node) => {
    if (isScalar(node) && typeof node.value === "string") delete node.source;
  });
  return document.toString({ lineWidth: 0 });
}

function uncomment(node: { comment?: string | null | undefined; commentBefore?: string | null | undefined }): void {
  node.comment = null;
  node.commentBefore = null;
}

function typeOf(source: YAMLMap): string {
  const type = source.get("type");
  return typeof type === "string" ? type : "";
}

/** Keys and indices from the document to the last of `nodes`. */
function pathTo(nodes: readonly unknown[]): readonly (string | number)[] {
  return nodes.flatMap((node, i): readonly (string | number)[] => {
    if (isPair(node)) return [String(node.key)];
    return isSeq(node) ? [node.items.indexOf(nodes[i + 1])] : [];
  });
}

function withoutDefault(text: string): string {
  return text.replace(/:-[^}]*\}$/, ":-***}");
}
