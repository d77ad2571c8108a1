// Which address feeds an Input ID, across restarts.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openBoundAddresses } from "../../../src/agent/upkeep/bound-addresses.ts";
import type { InputId } from "../../../src/core/point.ts";
import { rule, tagId } from "../../support/mapping.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const input = "hall.temp" as InputId; // a valid Input ID
const source = (topic: string) => ({ name: "hall", tags: [{ every: 1_000, topic }], rules: [rule({ input })] });

test("an address stays bound to its Input ID over a restart while the tag is unchanged", async () => {
  using folder = temporaryFolder();
  const path = folder.file("addresses.json");
  {
    await using bound = await openBoundAddresses(path, testRuntime());
    const memory = bound.of(source("+/temp"));
    expect(memory.recall(tagId(0), input)).toBeUndefined();
    memory.remember(tagId(0), input, "a/temp");
    memory.remember(tagId(0), input, "b/temp");
  }
  await using bound = await openBoundAddresses(path, testRuntime());
  const again = bound.of(source("+/temp"));
  expect(again.recall(tagId(0), input)).toBe("b/temp");
  expect([...again.inputs()]).toEqual([{ tag: tagId(0), input, address: "b/temp" }]);
  expect(bound.of(source("c/temp")).recall(tagId(0), input)).toBeUndefined();
});

test("removed sources and tags take no space in the file", async () => {
  using folder = temporaryFolder();
  const path = folder.file("addresses.json");
  {
    await using bound = await openBoundAddresses(path, testRuntime());
    for (let i = 0; i < 100; i++) {
      const name = `hall${i}`;
      for (const topic of ["+/temp", "b/+"])
        bound.of({ ...source(topic), name }).remember(tagId(0), input, `${i}/temp`);
      bound.keepSources([name]);
    }
  }
  const written = JSON.parse(readFileSync(path, "utf8")) as Record<string, object>; // the format of the file
  expect(Object.keys(written)).toEqual(["hall99"]);
  expect(Object.keys(written.hall99 ?? {})).toHaveLength(1);
});

test("a file that cannot be read or written is reported and stops nothing", async () => {
  using folder = temporaryFolder();
  const path = folder.file("addresses.json");
  writeFileSync(path, "{");
  const runtime = testRuntime();
  await using bound = await openBoundAddresses(path, runtime);
  expect(runtime.lines.map(({ message }) => message)).toEqual(["cannot read which address feeds which Input ID"]);
  expect(bound.of(source("+/temp")).recall(tagId(0), input)).toBeUndefined();

  const blind = testRuntime();
  {
    await using unwritable = await openBoundAddresses(folder.file("nowhere/addresses.json"), blind);
    unwritable.of(source("+/temp")).remember(tagId(0), input, "a/temp");
  }
  expect(blind.lines[0]?.message).toMatch(/^cannot persist which address feeds which Input ID/);
});
