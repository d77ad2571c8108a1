// Shows a whole configuration file without secrets. Lines alone do not tell where a value ends, in which map a key of a
// flow map is, or what an alias repeats. The parser does, where the file is valid.
import { isPair, isScalar, type Node, parseDocument, visit } from "yaml";
import { shownValue } from "../../lib/text/without-secrets.ts";
import { isHidden, isSecretKey, shownLines } from "./excerpt.ts";

const hidden = "***";
/** A value that consists of a reference, which reveals nothing. */
const reference = /^\$\{(?:(?:file|credential):[^}:]*|[A-Za-z_]\w*)\}$/;

/** The lines of a file without secrets and comments. Undefined: it is not YAML, so secrets cannot be recognised. */
export function shownFile(text: string): readonly string[] | undefined {
  const lines = text.split(/\r?\n/);
  const parsed = withoutSecretValues(text);
  if (parsed === undefined) return undefined;
  const parsedLines = parsed.split(/\r?\n/);
  const found = shownLines(parsed);
  // An unclosed quote that is hidden would no longer tell that the next line belongs to it.
  return shownLines(text).map((line, i) => (parsedLines[i] === lines[i] ? line : (found[i] ?? hidden)));
}

/** `text` with `***` for each value that may be secret, in as many lines. Undefined: it is not YAML. */
function withoutSecretValues(text: string): string | undefined {
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false, logLevel: "silent" });
  if (document.errors.length > 0) return undefined;
  const secret = new Set<Node>();
  visit(document, {
    Scalar(key, node, ancestors) {
      const names = namesOf(key, ancestors);
      if (key === "key" ? names.some(isSecretKey) : isHidden(names.join("."), [])) secret.add(node);
      else if (typeof node.value === "string" && shownValue(node.value) !== node.value)
        if (!sourceOf(node, text).includes(node.value)) secret.add(node);
    },
    Alias(key, node, ancestors) {
      if (!isHidden(namesOf(key, ancestors).join("."), [])) return;
      visit(node.resolve(document) ?? null, { Scalar: (place, each) => void (place === "key" || secret.add(each)) });
    },
  });
  const ranges = [...secret].flatMap((node) => (isShown(node) || !node.range ? [] : [node.range]));
  let shown = "";
  let done = 0;
  for (const [from, to] of ranges.toSorted(([a], [b]) => a - b)) {
    if (from < done) continue;
    shown += `${text.slice(done, from)}${hidden}${"\n".repeat(text.slice(from, to).split("\n").length - 1)}`;
    done = to;
  }
  return shown + text.slice(done);
}

/** The keys from the document to a node, without its own if it is a key. */
function namesOf(key: unknown, ancestors: readonly unknown[]): readonly string[] {
  const names = ancestors.filter(isPair).map((pair) => String(pair.key));
  return key === "key" ? names.slice(0, -1) : names;
}

function sourceOf({ range }: Node, text: string): string {
  return range ? text.slice(range[0], range[1]) : "";
}

/** Whether the value reveals nothing. */
function isShown(node: Node): boolean {
  return isScalar(node) && (node.value === null || (typeof node.value === "string" && reference.test(node.value)));
}
