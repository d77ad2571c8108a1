// An OpenTelemetry collector as a peer: it receives OTLP/HTTP and passes the decoded data to the test as JSON. The
// collector's own builder generated its sources (`otel-collector/`). Needs Go to download the modules.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { onFreePorts } from "../../src/demo/free-ports.ts";
import { eventually } from "./eventually.ts";
import { peerProgram } from "./peer-program.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const run = promisify(execFile);

/** The path of the program. */
export function otelCollectorProgram(): Promise<string> {
  const folder = join(import.meta.dirname, "otel-collector");
  const sources = ["go.mod", "go.sum", "main.go", "components.go", "main_others.go"].map((name) => join(folder, name));
  return peerProgram("otel-collector", sources, async (_, output) => {
    const env = { ...process.env, CGO_ENABLED: "0" };
    await run("go", ["build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", output, "."], {
      cwd: folder,
      env,
    });
  });
}

export interface OtelCollector extends AsyncDisposable {
  readonly url: string;
  /** The bodies that it passed on, in the order of arrival. */
  readonly metrics: readonly unknown[];
  readonly logs: readonly unknown[];
}

/** Resolves when it accepts requests. */
export async function otelCollector(): Promise<OtelCollector> {
  const program = await otelCollectorProgram();
  return await onFreePorts(1, ([port = 0]) => collectorOn(port, program));
}

async function collectorOn(port: number, program: string): Promise<OtelCollector> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(temporaryFolder());
  const received: Record<string, unknown[]> = { "/v1/metrics": [], "/v1/logs": [] };
  const sink = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    request.on("end", () => {
      received[request.url ?? ""]?.push(JSON.parse(text));
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  }).listen(0, "127.0.0.1");
  await once(sink, "listening");
  opened.defer(() => {
    sink.closeAllConnections();
    sink.close();
  });
  const pipeline = { receivers: ["otlp"], exporters: ["otlp_http"] };
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: {
      otlp_http: {
        endpoint: `http://127.0.0.1:${(sink.address() as AddressInfo).port}`,
        encoding: "json",
        compression: "none",
        sending_queue: { enabled: false },
      },
    },
    service: { telemetry: { metrics: { level: "none" } }, pipelines: { metrics: pipeline, logs: pipeline } },
  };
  writeFileSync(folder.file("collector.yaml"), JSON.stringify(config));
  const child = spawn(program, ["--config", folder.file("collector.yaml")], { stdio: ["ignore", "ignore", "pipe"] });
  let complaint = "";
  child.stderr.on("data", (chunk) => {
    complaint = (complaint + String(chunk)).slice(-4_000);
  });
  opened.defer(() => ended(child));
  const state = await eventually(() => {
    if (complaint.includes("Everything is ready")) return "ready";
    return child.exitCode === null ? undefined : "ended";
  }, 60_000);
  if (state === "ended") throw new Error(complaint);
  const owned = opened.move();
  return {
    url: `http://127.0.0.1:${port}`,
    metrics: received["/v1/metrics"] ?? [],
    logs: received["/v1/logs"] ?? [],
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
