// What the reader of a source hands over to the next one: the time up to which it has recorded, and its driver's files.
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { openHandover } from "../../../src/cluster/sources/source-leases.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { withSlashes } from "../../../src/lib/files/paths.ts";
import { memoryBucket, unreachable } from "../../support/memory-bucket.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

function site() {
  const folder = temporaryFolder();
  const state = memoryBucket();
  const place = (node: string) => folder.file(node);
  const open = (node: string, isHeld = () => true) =>
    openHandover({ state, source: "line.1", node, folder: place(node), isHeld });
  const put = (node: string, name: string, text: string) => {
    mkdirSync(dirname(join(place(node), name)), { recursive: true });
    writeFileSync(join(place(node), name), text);
  };
  const get = (node: string, name: string) => readFileSync(join(place(node), name), "utf8");
  return { folder, state, place, open, put, get, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

test("the next reader knows up to when everything is recorded, and has the files of the one before", async () => {
  using at = site();
  const first = await at.open("gw1");
  expect(first.former).toBeUndefined();
  at.put("gw1", "session.json", "old");
  at.put("gw1", "set/history.times", "\u0000\u0001");
  at.put("gw1", "own.pem", "secret");
  await first.save(epochMicros(1_000));
  at.put("gw1", "session.json", "new");
  await first.save(epochMicros(2_000));
  at.put("gw2", "stale.json", "of an earlier time");
  const second = await at.open("gw2");
  expect(second.former).toEqual({ node: "gw1", upTo: 2_000 });
  const names = ["session.json", "set", "set/history.times"];
  const found = readdirSync(at.place("gw2"), { recursive: true, encoding: "utf8" }).map(withSlashes);
  expect(new Set(found)).toEqual(new Set(names));
  expect(at.get("gw2", "session.json")).toBe("new");
  expect(at.get("gw2", "set/history.times")).toBe("\u0000\u0001");
});

test("an agent that read the source last goes on with its own files", async () => {
  using at = site();
  const first = await at.open("gw1");
  at.put("gw1", "session.json", "handed over");
  await first.save(epochMicros(1_000));
  at.put("gw1", "session.json", "newer");
  expect((await at.open("gw1")).former).toBeUndefined();
  expect(at.get("gw1", "session.json")).toBe("newer");
});

test("the files of each server of a redundant set are handed over, keys and certificates are not", async () => {
  using at = site();
  const first = await at.open("gw1");
  at.put("gw1", "servers/0a1b2c3d4e5f/history.json", "history");
  at.put("gw1", "servers/0a1b2c3d4e5f/pki/own.json.pem", "key");
  at.put("gw1", "pki/own/private/key.pem", "key");
  await first.save(epochMicros(1_000));
  await at.open("gw2");
  expect(at.get("gw2", "servers/0a1b2c3d4e5f/history.json")).toBe("history");
  const handed = await at.state.list("files.");
  expect(handed.map(({ key }) => key)).toEqual(["files.line=2e1.servers=2f0a1b2c3d4e5f=2fhistory=2ejson"]);
});

test("a file that is gone is not handed over", async () => {
  using at = site();
  const first = await at.open("gw1");
  at.put("gw1", "a.json", "a");
  at.put("gw1", "b.json", "b");
  await first.save(epochMicros(1_000));
  rmSync(join(at.place("gw1"), "a.json"));
  await first.save(epochMicros(2_000));
  await at.open("gw2");
  expect(readdirSync(at.place("gw2"))).toEqual(["b.json"]);
});

test("a former reader that resumes changes nothing", async () => {
  using at = site();
  let isHeld = true;
  const first = await at.open("gw1", () => isHeld);
  at.put("gw1", "session.json", "first");
  await first.save(epochMicros(1_000));
  const second = await at.open("gw2");
  at.put("gw2", "session.json", "second");
  await second.save(epochMicros(2_000));
  isHeld = false;
  at.put("gw1", "session.json", "resumed");
  await first.save(epochMicros(9_000));
  expect((await at.open("gw3")).former).toEqual({ node: "gw2", upTo: 2_000 });
  expect(at.get("gw3", "session.json")).toBe("second");
});

test("a former reader that resumes changes nothing either before the next one has written", async () => {
  using at = site();
  let isHeld = true;
  const first = await at.open("gw1", () => isHeld);
  at.put("gw1", "session.json", "first");
  at.put("gw1", "names.json", "names");
  await first.save(epochMicros(1_000));
  await at.open("gw2");
  isHeld = false;
  at.put("gw1", "session.json", "resumed");
  at.put("gw1", "other.json", "resumed");
  rmSync(join(at.place("gw1"), "names.json"));
  await first.save(epochMicros(9_000));
  expect((await at.open("gw3")).former).toEqual({ node: "gw1", upTo: 1_000 });
  expect(readdirSync(at.place("gw3")).toSorted()).toEqual(["names.json", "session.json"]);
  expect(at.get("gw3", "session.json")).toBe("first");
});

test("a write whose answer was lost does not shut the reader out", async () => {
  using at = site();
  const first = await at.open("gw1");
  at.put("gw1", "session.json", "one");
  await first.save(epochMicros(1_000));
  at.state.after = (call) => {
    if (call === "update") throw unreachable();
  };
  at.put("gw1", "session.json", "two");
  await expect(first.save(epochMicros(2_000))).rejects.toThrow("no answer");
  at.state.after = () => {};
  at.put("gw1", "session.json", "three");
  await first.save(epochMicros(3_000));
  expect((await at.open("gw2")).former).toEqual({ node: "gw1", upTo: 3_000 });
  expect(at.get("gw2", "session.json")).toBe("three");
});

test("a file that has become too large is not handed over in an older version", async () => {
  using at = site();
  const first = await at.open("gw1");
  at.put("gw1", "session.json", "old");
  at.put("gw1", "other.json", "other");
  await first.save(epochMicros(1_000));
  // Compression makes hexadecimal digits half as long.
  at.put("gw1", "session.json", randomBytes(600 * 1_024).toString("hex"));
  await first.save(epochMicros(2_000));
  const second = await at.open("gw2");
  expect(second.former).toEqual({ node: "gw1", upTo: 2_000 });
  expect(readdirSync(at.place("gw2"))).toEqual(["other.json"]);
});

test("a damaged file in the cluster keeps no agent from reading the source", async () => {
  using at = site();
  const first = await at.open("gw1");
  at.put("gw1", "session.json", "session");
  await first.save(epochMicros(1_000));
  await at.state.create("files.line=2e1.other=2ejson", Buffer.from("not compressed"));
  const second = await at.open("gw2");
  expect(readdirSync(at.place("gw2"))).toEqual(["session.json"]);
  at.put("gw2", "other.json", "its own");
  await second.save(epochMicros(2_000));
  await at.open("gw3");
  expect(at.get("gw3", "other.json")).toBe("its own");
});
