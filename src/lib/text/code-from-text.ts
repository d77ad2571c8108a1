// Code made of text, as by `eval`. V8 has a flag against it, with which Node compiles its own modules at each start, since
// they were compiled in advance for other flags.

/** One function of each kind. Their constructors compile text. */
const functions = [() => {}, async () => {}, function* () {}, async function* () {}];

/**
 * From now on `eval` and all constructors of functions throw `EvalError` in this thread. Contexts of `node:vm` have their
 * own. Cannot be undone.
 */
export function forbidCodeFromText(): void {
  const refuse = () => {
    throw new EvalError("code generation from strings is disallowed");
  };
  const sealed = <T extends object>(original: T) => new Proxy(original, { apply: refuse, construct: refuse });
  const plain = sealed(Function);
  for (const each of functions) {
    const { constructor } = each;
    const isPlain = constructor === Function;
    // The other constructors inherit from the plain one, which must not be reachable through them.
    if (!isPlain) Object.setPrototypeOf(constructor, plain);
    const value = isPlain ? plain : sealed(constructor);
    Object.defineProperty(Object.getPrototypeOf(each), "constructor", { value });
  }
  Object.defineProperty(globalThis, "Function", { value: plain });
  Object.defineProperty(globalThis, "eval", { value: refuse });
}

/** Whether text can become code in this thread. */
export function hasCodeFromText(): boolean {
  try {
    Reflect.construct(Function, []);
    return true;
  } catch {
    return false;
  }
}
