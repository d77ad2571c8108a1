// `tagferry init` on a real terminal, a pseudo-terminal from util-linux's `script`.
import { chmodSync, chownSync, existsSync, readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";
import { program } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { type Terminal, terminal } from "../support/terminal.ts";

const init = `${process.execPath} ${program} init`;

/** Answers the questions that precede those about the sources. */
async function answersTheFirst(person: Terminal, name: string): Promise<void> {
  await person.type("Name of this agent", `${name}\r`);
  await person.type("Address of the service", "\r");
  await person.type("Integration ID", "c8ktonqsahsmemfs7lvg\r");
  await person.type("File with the password", "\r");
  await person.type("not shown here", "canary-4e21\r");
}

test("questions are answered on a terminal, and a password is not shown", async () => {
  using folder = temporaryFolder();
  await using person = terminal(init, { cwd: folder.path });
  await answersTheFirst(person, "gx\u007fw1");
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
  await using person = terminal(init, { cwd: folder.path });
  await person.type("Name of this agent", "gw1\r");
  await person.type("Address of the service", "\u0003");
  expect(await person.status()).toBe(1);
  expect(existsSync(folder.file("tagferry.yaml"))).toBe(false);
});

test("files that root writes into a folder of a group are readable by that group, and so by the service", async () => {
  using folder = temporaryFolder();
  chownSync(folder.path, 0, 12_345);
  chmodSync(folder.path, 0o750);
  await using person = terminal(init, { cwd: folder.path });
  await answersTheFirst(person, "");
  await person.type("Address of a source", "\r");
  await person.status();
  expect(statSync(folder.file("service_password"))).toMatchObject({ uid: 0, gid: 12_345, mode: 0o100640 });
  expect(statSync(folder.file("tagferry.yaml"))).toMatchObject({ uid: 0, gid: 12_345 });
});
