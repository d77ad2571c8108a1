// Evaluates a bundle with the functions that V8 compiled in an earlier process. Node's compile cache keeps only those that
// are compiled before the bundle runs, a fifth of what a start calls.
import { closeSync, fstatSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire, getCompileCacheDir } from "node:module";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Script } from "node:vm";
import { crc32 } from "node:zlib";

export interface CompiledBundle<Exports> {
  readonly exports: Exports;
  /** Saves the functions compiled until now, unless saved ones were used. V8 uses them under the same flags only. */
  readonly keep: () => void;
}

/** `bundle`: the text of a function, see `asFunction` in packaging/release.ts. `folder`: of the saved functions. */
export function loadBundle<Exports>(bundle: URL, folder = getCompileCacheDir()): CompiledBundle<Exports> {
  const filename = fileURLToPath(bundle);
  const text = readFileSync(filename);
  const file = folder && join(folder, `${basename(filename)}.code`);
  const textSum = crc32(text);
  const cachedData = file === undefined ? undefined : savedCode(file, textSum);
  const script = new Script(text.toString("latin1"), { filename, cachedData });
  const isCompiled = cachedData !== undefined && script.cachedDataRejected === false;
  return {
    exports: script.runInThisContext()(createRequire(bundle), bundle.href),
    keep() {
      if (file === undefined || isCompiled) return;
      try {
        const code = script.createCachedData();
        rmSync(`${file}.tmp`, { force: true });
        // Not through a link, which another user may have put into a folder for all.
        writeFileSync(`${file}.tmp`, Buffer.concat([checksums(textSum, code), code]), { mode: 0o600, flag: "wx" });
        renameSync(`${file}.tmp`, file);
      } catch {
        // The next start compiles again.
      }
    },
  };
}

/** V8 compares the length of the text only, and trusts the code. A file of another user could contain any code. */
function savedCode(file: string, textSum: number): Buffer | undefined {
  try {
    const descriptor = openSync(file, "r");
    try {
      if (fstatSync(descriptor).uid !== process.getuid?.()) return undefined;
      const saved = readFileSync(descriptor);
      const code = saved.subarray(checksumBytes);
      return saved.subarray(0, checksumBytes).equals(checksums(textSum, code)) ? code : undefined;
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return undefined;
  }
}

const checksumBytes = 8;

function checksums(textSum: number, code: Buffer): Buffer {
  return Buffer.from(Uint32Array.of(textSum, crc32(code)).buffer);
}
