// Finds secrets that stand in the file itself rather than being referred to.
import type { z } from "zod";
import type { Issues } from "./issue.ts";
import type { ConfigNode } from "./node.ts";
import { isSecret, schemasAt } from "./schema-walk.ts";

/** Warns of every secret in `node` that is written out. */
export function warnLiteralSecrets(schema: z.core.$ZodType, node: ConfigNode, issues: Issues): void {
  walk([schema], node, issues);
}

function walk(schemas: readonly z.core.$ZodType[], node: ConfigNode, issues: Issues): void {
  if (schemas.length === 0) return;
  if (node.kind === "map")
    for (const [key, { value }] of node.entries)
      walk(
        schemas.flatMap((schema) => schemasAt(schema, [key])),
        value,
        issues,
      );
  else if (node.kind === "list")
    node.items.forEach((item, index) =>
      walk(
        schemas.flatMap((schema) => schemasAt(schema, [index])),
        item,
        issues,
      ),
    );
  else if (
    node.reference === undefined &&
    !node.broken &&
    node.text !== "" &&
    (schemas.some(isSecret) || holdsPassword(node.text))
  )
    issues.warn(
      node,
      "a secret stands in the file itself",
      "better a reference: ${file:/run/secrets/name}, ${NAME} or, under systemd, ${credential:name}",
    );
}

/** `http://name:password@proxy:3128` */
function holdsPassword(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*:[^/?#]*@/i.test(text);
}
