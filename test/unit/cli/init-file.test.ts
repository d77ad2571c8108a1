// Where the data of the agent are, in the configuration that `init` writes.
import { expect, test } from "vitest";
import { initFile } from "../../../src/cli/configure/init-file.ts";
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
  const given = { sources: [{ url: "simulator" }], password: { env: "PASSWORD" }, unattended: true, offline: true };
  const { secrets: _, ...answers } = await askAll({ config: target, ...given }, target, { io, unattended: true });
  return initFile({ ...answers, file: target, exampleIntegration: true });
}

test("commands look where the agent of the package keeps its data, though only its unit is told the folder", async () => {
  const { agent } = await load(await written("/etc/tagferry/tagferry.yaml"), { PASSWORD: "x" });
  expect(agent.dataDir).toBe("/var/lib/tagferry");
});

test("elsewhere, and where the folder is given, the configuration leaves it open", async () => {
  const [here, told] = [
    await written("/site/tagferry.yaml"),
    await written("/etc/tagferry/tagferry.yaml", { STATE_DIRECTORY: "/data" }),
  ];
  expect((await load(here, { PASSWORD: "x" })).agent.dataDir).toBe("/site/data");
  expect((await load(told, { PASSWORD: "x", STATE_DIRECTORY: "/data" })).agent.dataDir).toBe("/data");
});
