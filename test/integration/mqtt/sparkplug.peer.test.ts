// Sparkplug B with a third-party edge node in Python (pysparkplug), over mosquitto.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import type { Reading } from "../../../src/core/source.ts";
import { eventually } from "../../support/eventually.ts";
import { type Mosquitto, openMosquitto } from "../../support/mosquitto.ts";
import { openMqttSource, pull } from "../../support/mqtt-source.ts";
import { pythonWith } from "../../support/python.ts";
import { testRuntime } from "../../support/runtime.ts";

const { signal } = new AbortController();
const tags = [{ topic: "spBv1.0/#", format: "sparkplugB" }];

test("births, data and deaths of node and device are decoded, negative values included", async () => {
  await using broker = await openMosquitto();
  const { url, username, password } = broker;
  await using source = await openMqttSource({ options: { url, username, password }, tags }, testRuntime(), signal);
  await using node = await edgeNode(broker);
  const puller = pull(source, signal);

  const births = await puller.readings(9);
  expect(brief(births)).toEqual([
    "/int8=-5",
    "/int16=-300",
    "/int32=-70000",
    `/int64=${-(2 ** 40)}`,
    "/uint32=4294967291",
    "/float=0.5",
    "/double=-1e+300",
    "/bool=true",
    "D1/Line 1/Speed=100",
  ]);
  node.tell("data");
  expect(brief(await puller.readings(2))).toEqual(["/int32=-1", "D1/Line 1/Speed=99"]);
  node.tell("end");
  const deaths = await puller.readings(9);
  expect(deaths.every(({ quality, reason }) => quality === "bad" && reason === "edge node E1 is offline")).toBe(true);
});

test("a node that was online first answers the request for its birth", async () => {
  await using broker = await openMosquitto();
  const watcher = await broker.publisher();
  const seen: string[] = [];
  watcher.on("message", (topic) => seen.push(topic));
  await watcher.subscribeAsync("spBv1.0/#");
  await using node = await edgeNode(broker);
  const { url, username, password } = broker;
  // The edge node has published its birth, and receives commands, before the source connects.
  await eventually(() => seen.includes("spBv1.0/G1/DBIRTH/E1/D1"));
  await using _source = await openMqttSource({ options: { url, username, password }, tags }, testRuntime(), signal);

  await eventually(() => {
    node.tell("data");
    return node.lines.includes("command Node Control/Rebirth=True");
  });
});

function brief(readings: readonly Reading[]): string[] {
  return readings.map(({ captures, value }) => `${captures["device"]}/${captures["metric"]}=${String(value)}`);
}

async function edgeNode({ port, username, password }: Mosquitto) {
  const python = await pythonWith("pysparkplug==0.5.0");
  const script = join(import.meta.dirname, "../../support/sparkplug-node.py");
  const child = spawn(python, [script, String(port), username, password], { stdio: ["pipe", "pipe", "inherit"] });
  const lines: string[] = [];
  createInterface(child.stdout).on("line", (line) => lines.push(line));
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return {
    lines,
    tell: (line: string) => child.stdin.write(`${line}\n`),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      child.kill();
      await ended;
    },
  };
}
