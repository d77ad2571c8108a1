// The data directory in the configuration that `init` writes.
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { initFile } from "../../../src/cli/configure/init.ts";
import { askAll } from "../../../src/cli/configure/init-questions.ts";
import type { Console } from "../../../src/cli/terminal/console.ts";
import { environmentOf, load } from "../../support/config.ts";

async function written(target: string, variables: Readonly<Record<string, string>> = {}) {
  const { signal } = new AbortController();
  const environment = environmentOf({ PASSWORD: "x", ...variables });
  const ask = () => Promise.reject(new Error("nobody is asked"));
  const io: Console = {
    print() {},
    complain() {},
    write: async () => true,
    progress() {},
    input: { typed: false, readAll: async () => "", ask },
    screen: undefined,
    environment,
    interactive: false,
    signal,
    onHangUp() {},
  };
  const given = { sources: [{ url: "simulator" }], passwordEnv: "PASSWORD", unattended: true, offline: true };
  const { secrets: _, ...answers } = await askAll({ config: target, ...given }, { io, unattended: true, target });
  return initFile({ ...answers, file: target, exampleIntegration: true, includes: false });
}

test("init does not set the data directory, neither here nor at the package's path", async () => {
  for (const target of ["/site/tagferry.yaml", "/etc/tagferry/tagferry.yaml"])
    expect((await load(await written(target), { PASSWORD: "x", STATE_DIRECTORY: "/data" })).agent.dataDir).toBe(
      resolve("/data"),
    );
});

test("the commands at the top of the configuration quote a file whose name a shell would divide", async () => {
  const top = (await written("/line 1/tagferry.yaml")).split("\n").slice(0, 6).join("\n");
  for (const command of ["check", "test", "run"])
    expect(top).toMatch(new RegExp(`^#   tagferry ${command} -c (['"])/line 1/tagferry\\.yaml\\1 `, "m"));
});
