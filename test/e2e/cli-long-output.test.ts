// Results that exceed the capacity of a pipe. The command ends when the reader has read everything or has closed the
// pipe.
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Writable } from "node:stream";
import { expect, test } from "vitest";
import { configJsonSchema } from "../../src/config/reference/json-schema.ts";
import { drivers } from "../../src/source/registry.ts";
import { has } from "../support/platform.ts";
import { program } from "../support/program.ts";

/** The capacity of a pipe on Linux. */
const pipeBytes = 65_536;

/** Writes to standard error when the event loop has turned once after a result was written. */
const tellTurn = `data:text/javascript,${encodeURIComponent(`
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = (...given) => {
  setImmediate(() => process.stderr.write("turned"));
  return write(...given);
};`)}`;
/**
 * Reads nothing until a line arrives on descriptor 3. A shell makes the pipe, because Node gives its children sockets,
 * which hold more than a pipe.
 */
const slowReader = '{ "$0" --import "$1" "$2" schema; echo ended >&2; } | { read -r go <&3; cat; }';

test.runIf(has.shell)("a result longer than the pipe buffer reaches a slow reader in full", async () => {
  const child = spawn("sh", ["-c", slowReader, process.execPath, tellTurn, program], {
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  let stdout = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk) => (stdout += chunk));
  // The program waits for its reader, or has ended.
  child.stderr?.once("data", () => (child.stdio[3] as Writable).end("go\n")); // stdio[3] is a pipe, hence writable
  await once(child, "close");
  expect(stdout.length).toBeGreaterThan(pipeBytes);
  expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(configJsonSchema(drivers))));
});

test("a reader that closes the pipe early ends the command", async () => {
  const child = spawn(process.execPath, [program, "schema"], { stdio: ["ignore", "pipe", "pipe"] });
  let complaints = "";
  child.stderr.on("data", (chunk) => (complaints += String(chunk)));
  child.stdout.once("data", () => child.stdout.destroy());
  await once(child, "close");
  expect({ status: child.exitCode, complaints }).toEqual({ status: 0, complaints: "" });
});

test.runIf(has.linuxFiles)("results that cannot be written end the command with the reason", async () => {
  const child = spawn("sh", ["-c", '"$0" "$1" schema > /dev/full', process.execPath, program], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let complaints = "";
  child.stderr.on("data", (chunk) => (complaints += String(chunk)));
  await once(child, "close");
  expect({ status: child.exitCode, complaints }).toEqual({
    status: 1,
    complaints: expect.stringMatching(/^tagferry: cannot write the results: .*\(ENOSPC\)\n {2}df -h/),
  });
});
