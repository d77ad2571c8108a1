// How the running process is hardened, as it is and not as it was meant to be.

export interface ProcessSecurity {
  /** It has the rights of root. */
  readonly root: boolean;
  /** A signal calls up the debugger, which opens a port. */
  readonly debuggerSignal: boolean;
  /** Text can be made into code. */
  readonly codeFromText: boolean;
  /** What comes from outside can reach the prototype of objects by the name `__proto__`. */
  readonly proto: boolean;
  readonly node: string;
}

export function processSecurity(): ProcessSecurity {
  const flags = [...process.execArgv, ...(process.env["NODE_OPTIONS"] ?? "").split(" ")];
  return {
    root: process.getuid?.() === 0,
    debuggerSignal: !flags.includes("--disable-sigusr1"),
    codeFromText: !flags.includes("--disallow-code-generation-from-strings"),
    proto: Object.hasOwn(Object.prototype, "__proto__"),
    node: process.version,
  };
}
