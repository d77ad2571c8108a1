// F16, F23: a service that reads nothing, never answers, or sends a byte a second. The uploader waits no longer than
// the request timeout.
import { writeFileSync } from "node:fs";
import { test } from "vitest";
import { authority } from "../support/certificate.ts";
import { eventually } from "../support/eventually.ts";
import { accepts, type Behaviour, ScriptedService } from "../support/scripted-service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { uploading } from "../support/uploading.ts";

const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;

const silent: Behaviour = () => {};
const slow: Behaviour = ({ response }) => {
  response.writeHead(200, { "content-length": 1_000 });
  const timer = setInterval(() => response.write(" "), 1_000);
  response.on("close", () => clearInterval(timer));
};

const headersAlone: Behaviour = ({ response }) => {
  response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
  const timer = setInterval(() => response.write(" "), 60_000);
  response.on("close", () => clearInterval(timer));
};

test.concurrent.for([
  ["silence", silent],
  ["a byte a second", slow],
  ["an answer without a length, headers at once and a byte a minute,", headersAlone],
] as const)(
  "F23: %s is broken off, and the points arrive afterwards",
  { timeout: 120_000 },
  async ([, behaviour], { expect }) => {
    await using service = await ScriptedService.open();
    service.otherwise = behaviour;
    await using upload = await uploading({ url: service.url, speed: 20 });
    upload.reader.append({ a: [[start, 1]] });
    const status = await eventually(() => {
      const now = upload.uploader.status();
      return now.requests.failed > 0 && now;
    }, 90_000);
    expect(status).toMatchObject({
      state: "unreachable",
      lastError: { message: "no answer within 30 s", current: true },
    });
    expect(upload.reader.settled).toEqual([]);
    service.otherwise = accepts;
    await eventually(() => upload.reader.empty, 90_000);
    expect(service.stored.size).toBe(1);
  },
);

test.concurrent.for(["http", "https"])(
  "F16: a connection that takes nothing more is given up after 20 to 40 s, however large the request is (%s)",
  {
    timeout: 120_000,
  },
  async (protocol, { expect }) => {
    using folder = temporaryFolder();
    const { cert, issue } = authority();
    const caFile = folder.file("ca.pem");
    writeFileSync(caFile, cert);
    const isTls = protocol === "https";
    await using service = await ScriptedService.open(isTls ? issue({ names: ["localhost"] }) : undefined);
    service.atHead = (incoming) => {
      incoming.socket.pause();
      return true;
    };
    await using upload = await uploading({ url: service.url, speed: 1, service: isTls ? { caFile } : {} });
    const inputs = Array.from({ length: 100 }, (_, k) => `line1.tag${k}`);
    upload.reader.append(
      Object.fromEntries(
        inputs.map((input) => [input, Array.from({ length: 4_600 }, (_, i) => [start + i * 1e6, i / 7] as const)]),
      ),
    );
    const status = await eventually(() => {
      const now = upload.uploader.status();
      return now.requests.failed > 0 && now;
    }, 100_000);
    expect(status.lastError?.message).toContain("nothing more of the request was taken for 20 s");
    service.atHead = undefined;
    await eventually(() => upload.reader.empty, 60_000);
    expect([service.stored.size, upload.departures[0]?.bytes ?? 0]).toEqual([460_000, expect.toSatisfy(over7MiB)]);
  },
);

const over7MiB = (bytes: number) => bytes > 7 * 2 ** 20;
