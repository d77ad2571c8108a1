import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { Secret } from "../../src/core/secret.ts";
import { integration, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const run = promisify(execFile);
const page = readFileSync(join(import.meta.dirname, "../../docs/local-service.md"), "utf8");
const examples = [...page.matchAll(/^```sh\n(.*?)^```$/gms)]
  .map(([, script = ""]) => script)
  .filter((script) => script.includes("curl"));

test("the curl examples of the documentation work unchanged, one after the other", async () => {
  using folder = temporaryFolder();
  const grants = ["admin", "platform"] as const;
  await using service = await testService({
    integrations: [
      {
        id: integration,
        password: new Secret("secret"),
        clientId: "me",
        clientSecret: new Secret("s3cret"),
        grants: [...grants],
      },
    ],
  });
  const env = { ...process.env, URL: service.url, ID: integration, PASSWORD: "secret" };
  const replies: unknown[] = [];
  for (const script of examples) {
    const { stdout } = await run("bash", ["-euo", "pipefail", "-c", script], { cwd: folder.path, env });
    replies.push(JSON.parse(stdout));
  }
  const methods = [
    "saveSignals",
    "insert",
    "selectSignals",
    "publishSignals",
    "selectItems",
    "dataFrame",
    "evaluate",
    "selectItems",
  ];
  expect(examples.map((script) => /"method": "\w+\.(\w+)"/.exec(script)?.[1])).toEqual(methods);
  for (const [i, reply] of replies.entries())
    expect(reply, methods[i]).toMatchObject({ jsonrpc: "2.0", id: 1, result: expect.any(Object) });
  expect(replies.at(-2)).toMatchObject({ result: { data: { series: { celsius: [71.75], fahrenheit: [161.15] } } } });
});
