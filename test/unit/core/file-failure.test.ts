import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { remedyOf } from "../../../src/core/errors.ts";
import { has } from "../../support/platform.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test.runIf(has.shell).for(["plain", "with a space", "it's", "a$& b", "a;b"])(
  "the command that moves a misplaced file away works in a shell: %s",
  (name) => {
    using folder = temporaryFolder();
    const path = folder.file(name);
    writeFileSync(path, "");
    let remedy: string | undefined;
    try {
      mkdirSync(path);
    } catch (error) {
      remedy = remedyOf(error);
    }
    const command = /^(mv .*) moves it away$/.exec(remedy ?? "")?.[1];
    execFileSync("sh", ["-c", command ?? "false"]);
    expect([existsSync(path), existsSync(`${path}.aside`)]).toEqual([false, true]);
  },
);
