// A configuration file for support bundles: without comments, secrets, and credentials in addresses.
import { isMap, isPair, isScalar, isSeq, parseDocument, Scalar, visit, type YAMLMap } from "yaml";
import { z } from "zod";
import type { Driver } from "../core/driver.ts";
import { shownValue } from "../lib/text/without-secrets.ts";
import { sections } from "./format/file-schema.ts";
import { isHidden, isHiddenKey, shownKey } from "./nodes/excerpt.ts";
import { schemasAt } from "./nodes/schema-walk.ts";

const hidden = "***";
/** A reference reveals nothing, but its default may. */
const reference = /^\$\{(?:(?:file|credential):[^}]*|[A-Za-z_]\w*(?::-[^}]*)?)\}$/;

/** Undefined: `text` is not YAML, so secrets cannot be recognised. */
export function shownFile(text: string, drivers: readonly Driver[]): string | undefined {
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false });
  if (document.errors.length > 0) return undefined;
  const own = z.strictObject(sections);
  const types = new Map<string, string>();
  const sources = document.get("sources");
  if (isMap(sources))
    for (const { key, value } of sources.items) if (isMap(value)) types.set(String(key), typeOf(value));
  /** Anchor names are free text, so they are replaced. */
  const anchors = new Map<string, string>();
  document.commentBefore = null;
  document.comment = null;
  visit(document, {
    Collection(_key, node) {
      unmark(node, anchors);
    },
    Alias(_key, node) {
      uncomment(node);
      const anchor = anchors.get(node.source);
      if (anchor === undefined) return new Scalar(hidden);
      node.source = anchor;
      return undefined;
    },
    Scalar(key, node, ancestors) {
      unmark(node, anchors);
      const path = pathTo([...ancestors, node]);
      const driver = drivers.find(({ type }) => path[0] === "sources" && type === types.get(String(path[1])));
      const schemas = driver ? schemasAt(driver.schema, path.slice(2)) : schemasAt(own, path);
      if (key === "key") {
        node.value = isHiddenKey(path.join(".")) ? hidden : shownKey(String(node.value));
        return;
      }
      const isSecretValue = isHidden(path.join("."), schemas);
      const written = typeof node.value === "string" ? node.value : undefined;
      if (isSecretValue)
        node.value = written !== undefined && reference.test(written) ? withoutDefault(written) : hidden;
      else if (written !== undefined) node.value = shownValue(written);
    },
  });
  // Drops the source text of scalars, whose folding may have changed.
  visit(document, (_key, node) => {
    if (isScalar(node) && typeof node.value === "string") delete node.source;
  });
  return document.toString({ lineWidth: 0 });
}

/** Removes the comment and tag, and replaces the name of an anchor. */
function unmark(
  node: Parameters<typeof uncomment>[0] & { anchor?: string; tag?: string },
  anchors: Map<string, string>,
) {
  uncomment(node);
  delete node.tag;
  if (node.anchor === undefined) return;
  anchors.set(node.anchor, anchors.get(node.anchor) ?? `a${anchors.size + 1}`);
  node.anchor = anchors.get(node.anchor) ?? "";
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
