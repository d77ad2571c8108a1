// `tagferry init` on a real terminal: a pseudo-terminal of util-linux's `script`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const main = resolve(import.meta.dirname, "../../src/cli/main.ts");

/** The program on a terminal; `type` waits for a question and answers it. */
function terminal(folder: string) {
  const program = `${process.execPath} ${main} init`;
  const child = spawn("script", ["-q", "-e", "-c", program, "/dev/null"], {
    cwd: folder,
    stdio: ["pipe", "pipe", "inherit"],
  });
  let screen = "";
  let seen = 0;
  child.stdout.on("data", (chunk) => (screen += String(chunk)));
  const ended = once(child, "close");
  return {
    screen: () => screen,
    async type(question: string, keys: string) {
      await eventually(() => screen.indexOf(question, seen) >= 0, 30_000);
      seen = screen.indexOf(question, seen) + question.length;
      child.stdin.write(keys);
    },
    async status() {
      await ended;
      return child.exitCode;
    },
  };
}

test("questions are answered on a terminal, and a password is not shown", async () => {
  using folder = temporaryFolder();
  const person = terminal(folder.path);
  await person.type("Name of this agent", "gx\u007fw1\r");
  await person.type("Address of the service", "\r");
  await person.type("Integration ID", "c8ktonqsahsmemfs7lvg\r");
  await person.type("File with the password", "\r");
  await person.type("not shown here", "canary-4e21\r");
  await person.type("Address of a source", "simulator\r");
  await person.type("Address of a source", "\r");
  expect(await person.status()).toBe(0);
  expect(person.screen()).toContain("tagferry.yaml is written: 1 source, 2 tags");
  expect(person.screen()).not.toContain("canary");
  expect(readFileSync(folder.file("tagferry.yaml"), "utf8")).toContain("name: gw1 ");
  expect(readFileSync(folder.file("service_password"), "utf8")).toBe("canary-4e21\n");
});

test("^C ends the questions and nothing is written", async () => {
  using folder = temporaryFolder();
  const person = terminal(folder.path);
  await person.type("Name of this agent", "gw1\r");
  await person.type("Address of the service", "\u0003");
  expect(await person.status()).toBe(1);
  expect(existsSync(folder.file("tagferry.yaml"))).toBe(false);
});
