// Bounds that hold for the params of every method, before any of them looks at its own.
import { Faults } from "./rpc-fault.ts";

const maxDepth = 32;

/**
 * Throws -32602 where params are nested deeper than any method needs, or have a key `__proto__`, which programs on
 * either side could take for more than a name.
 */
export function checkShape(params: object): void {
  const faults = new Faults();
  visit(params, "", 1, faults);
  faults.throwIfAny();
}

function visit(value: object, path: string, depth: number, faults: Faults): void {
  if (depth > maxDepth) {
    faults.add(path, `must not be nested more than ${maxDepth} deep`);
    return;
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const element: unknown = value[i];
      if (typeof element === "object" && element !== null) visit(element, `${path}.${i}`, depth + 1, faults);
    }
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    const at = path === "" ? key : `${path}.${key}`;
    if (key === "__proto__") faults.add(at, "must not be __proto__");
    else if (typeof member === "object" && member !== null) visit(member, at, depth + 1, faults);
  }
}
