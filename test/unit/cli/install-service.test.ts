import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { unitFor } from "../../../src/cli/run/install-service.ts";
import { nodeFlags } from "../../../src/cli/shared/node-flags.ts";
import { command } from "../../support/command.ts";
import { has } from "../../support/platform.ts";

const root = resolve(import.meta.dirname, "../../..");
const unit = readFileSync(resolve(root, "systemd/tagferry.service"), "utf8");

test.runIf(has.packages)(
  "the unit of this program starts it with its Node and configuration, and otherwise equals the package's unit",
  () => {
    const places = { node: "/opt/node/bin/node", entry: "/opt/tagferry/main.js", config: "/etc/plant/north.yaml" };
    const program = `/opt/node/bin/node ${nodeFlags.join(" ")} /opt/tagferry/main.js`;
    const changed = unitFor(unit, places)
      .split("\n")
      .filter((line) => !unit.split("\n").includes(line));

    expect(changed).toEqual([
      "ConditionPathExists=/etc/plant/north.yaml",
      `ExecStart=${program} run -c /etc/plant/north.yaml`,
      `ExecReload=${program} reload -c /etc/plant/north.yaml`,
      "LoadCredential=service_password:/etc/plant/credentials/service_password",
    ]);
  },
);

test("paths with blanks, percent and dollar signs are escaped", () => {
  const places = { node: "/opt/a b/node", entry: "/opt/50%/main.js", config: "/etc/$plant/x.yaml" };
  const text = unitFor(unit, places);
  expect(text).toContain(
    `ExecStart="/opt/a b/node" ${nodeFlags.join(" ")} /opt/50%%/main.js run -c /etc/$$plant/x.yaml`,
  );
  expect(text).toContain("ConditionPathExists=/etc/$plant/x.yaml");
});

test.runIf(has.packages)(
  "--print shows the unit, with the serial ports if requested, and changes nothing",
  async () => {
    const { status, stdout } = await command(["install-service", "--print", "--serial", "-c", "plant.yaml"]);
    expect(status).toBe(0);
    expect(stdout).toContain(`run -c ${resolve("plant.yaml")}\n`);
    expect(stdout).toContain("DeviceAllow=char-ttyUSB rw");
  },
);

test("Node is started with the same flags everywhere", () => {
  const flags = nodeFlags.join(" ");
  const read = (file: string) => readFileSync(resolve(root, file), "utf8");
  expect(read("src/cli/main.ts").split("\n")[0]).toBe(`#!/usr/bin/env -S node ${flags}`);
  expect(read("Dockerfile")).toContain(`ENTRYPOINT ["node", ${nodeFlags.map((flag) => `"${flag}"`).join(", ")}, `);
});
