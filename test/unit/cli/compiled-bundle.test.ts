// The compiled code that one start leaves to the next. Each start is a process of its own, since V8 keeps compiled code.
import { execFileSync } from "node:child_process";
import { chownSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { nodeFlags } from "../../../src/cli/shared/node-flags.ts";
import { expectMode, has } from "../../support/platform.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const source = (file: string) => pathToFileURL(resolve(import.meta.dirname, "../../../src", file)).href;
/** As the agent does: it runs the bundle, bounds garbage, which changes flags, and saves the code a second later. */
const program = `
import { loadBundle } from "${source("cli/shared/compiled-bundle.ts")}";
import { boundGarbage, withFlagsOfStart } from "${source("agent/process/process.ts")}";
const [bundle, folder] = process.argv.slice(1);
const { exports, keep } = loadBundle(new URL(bundle), folder);
console.log(exports.answer());
boundGarbage();
withFlagsOfStart(keep);
`;

function bundleOf(answer: number) {
  const folder = temporaryFolder();
  const file = folder.file("bundle.js");
  const code = folder.file("bundle.js.code");
  const put = (other: number) => writeFileSync(file, `(function(require,url){return{answer(){return ${other}}}})`);
  put(answer);
  const start = () => {
    const args = [...nodeFlags, "--input-type=module", "-e", program, pathToFileURL(file).href, folder.path];
    return Number(execFileSync(process.execPath, args, { encoding: "utf8" }));
  };
  start();
  // Each write makes another file.
  const written = () => statSync(code).ino;
  return { put, start, code, written, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

test.runIf(has.permissionBits)("the code that a start has compiled is used by the next one", () => {
  using bundle = bundleOf(1);
  const first = bundle.written();

  expect(bundle.start()).toBe(1);
  expect(bundle.written()).toBe(first);
  expectMode(bundle.code, 0o600);
});

test("after an upgrade to a bundle of the same length, the new one runs", () => {
  using bundle = bundleOf(1);
  const first = bundle.written();
  bundle.put(2);

  expect(bundle.start()).toBe(2);
  expect(bundle.written()).not.toBe(first);
});

test.each([
  ["cut short", (code: Buffer) => code.subarray(0, code.length / 2)],
  ["empty", () => Buffer.of()],
  ["with a changed bit", (code: Buffer) => code.map((byte, i) => (i === code.length - 9 ? byte ^ 1 : byte))],
])("code %s is compiled again", (_, damaged) => {
  using bundle = bundleOf(1);
  const whole = readFileSync(bundle.code).length;
  writeFileSync(bundle.code, damaged(readFileSync(bundle.code)));
  const first = bundle.written();

  expect(bundle.start()).toBe(1);
  expect(bundle.written()).not.toBe(first);
  expect(readFileSync(bundle.code).length).toBe(whole);
});

test.runIf(process.getuid?.() === 0)("code that belongs to another user is not run", () => {
  using bundle = bundleOf(1);
  chownSync(bundle.code, 65_534, 65_534);

  expect(bundle.start()).toBe(1);
  expect(statSync(bundle.code).uid).toBe(0);
});
