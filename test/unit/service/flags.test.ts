import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { optionsFromFlags } from "../../../src/service/config/options.ts";
import { command } from "../../support/command.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const id = "c8ktonqsahsmemfs7lv0";
const flags = { data: ":memory:", integration: id, password: "p" };

test("flags become options, with the defaults of the interface", async () => {
  expect(await optionsFromFlags(flags)).toMatchObject({
    listen: { host: "127.0.0.1", port: 8_420 },
    data: ":memory:",
    integrations: [{ id, grants: ["admin", "platform"] }],
    namespace: "platform",
    throttle: "queue",
  });
  const all = await optionsFromFlags({
    ...flags,
    listen: "[::1]:0",
    clientId: "c",
    clientSecret: "s",
    grant: "admin",
    namespace: "acme",
    throttle: "off",
    maxInsert: "1MiB",
    retention: "30d",
    tlsCert: "cert.pem",
    tlsKey: "key.pem",
    cors: ["https://dashboards.example.com"],
    fault: ["html", "status=500,rate=0.1"],
  });
  expect(all).toMatchObject({
    listen: { host: "::1", port: 0 },
    integrations: [{ grants: ["admin"], clientId: "c" }],
    maxInsert: 2 ** 20,
    retention: 30 * 86_400_000,
    tlsCert: "cert.pem",
    tlsKey: "key.pem",
    cors: ["https://dashboards.example.com"],
    faults: [{ kind: "html" }, { kind: "status", value: 500 }],
  });
  expect(JSON.stringify(all)).not.toContain('"s"');
});

test("all invalid flags are reported together", async () => {
  const wrong = optionsFromFlags({
    listen: "nowhere",
    integration: "short",
    clientId: "c",
    grant: "root",
    namespace: "admin",
    throttle: "never",
    maxInsert: "8",
    cors: ["dashboards.example.com"],
    fault: ["explode"],
  });
  await expect(wrong).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  const message = await wrong.then(
    () => "",
    (error: Error) => error.message,
  );
  expect(message).toContain("--listen: must be host:port, as in 127.0.0.1:8421, is nowhere");
  expect(message).toContain("--grant: must be admin or platform");
  expect(message).toContain("--throttle: must be queue, reject or off, is never");
  // Messages that zod writes by itself.
  expect(message).not.toMatch(/Invalid|Too (?:small|big)/);
  const named = message.split("\n").map((line) => line.split(":")[0] ?? "");
  expect(named.toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
    "--cors",
    "--data",
    "--fault",
    "--grant",
    "--integration",
    "--listen",
    "--max-insert",
    "--namespace",
    "--throttle",
  ]);
  await expect(optionsFromFlags({ data: "d" })).rejects.toThrow("--integration: must be given");
  await expect(optionsFromFlags({ config: "/no/such" })).rejects.toThrow("cannot read /no/such: there is no such file");
  await expect(optionsFromFlags({ data: "d", integration: id })).rejects.toThrow(
    "must have a password or client credentials",
  );
  await expect(optionsFromFlags({ ...flags, tlsKey: "key.pem" })).rejects.toThrow(
    "--tls-cert: tlsCert and tlsKey must be given together",
  );
});

test("a file defines several integrations, and flags take precedence", async () => {
  using folder = temporaryFolder();
  const config = folder.file("service.yaml");
  writeFileSync(
    config,
    `data: ./data\nthrottle: off\nintegrations:\n  - { id: ${id}, password: a, grants: [admin] }\n  - { id: c8ktonqsahsmemfs7lvg, clientId: c, clientSecret: s }\n`,
  );
  expect(await optionsFromFlags({ config, data: ":memory:" })).toMatchObject({
    data: ":memory:",
    throttle: "off",
    integrations: [
      { id, grants: ["admin"] },
      { id: "c8ktonqsahsmemfs7lvg", grants: ["admin", "platform"] },
    ],
  });
  writeFileSync(config, "data: [1\nintegrations: 5\n");
  await expect(optionsFromFlags({ config })).rejects.toThrow(/service\.yaml:\d+:\d+/);
  writeFileSync(
    config,
    `data: x\nintegrations:\n  - { id: ${id} }\n  - { integration: ${id}, grant: [admin] }\nmore: 1\n`,
  );
  await expect(optionsFromFlags({ config })).rejects.toThrow(
    [
      `${config}:3:5  integrations.0  must have a password or client credentials`,
      `${config}:4:5  integrations.1.id  must be given`,
      `${config}:4:20  integrations.1.integration  unknown key integration, grant; may be id, password, clientId, clientSecret, grants`,
      `${config}:5:7  more  unknown key more; may be listen, data,`,
    ].join("\n"),
  );
  await expect(optionsFromFlags({ config: folder.file("none.yaml") })).rejects.toMatchObject({
    code: "CONFIG_INVALID",
  });
});

test("secrets are read from files, so that no process list shows them, also from those that Notepad writes", async () => {
  using folder = temporaryFolder();
  const passwordFile = folder.file("password");
  const args = ["service", "--data", ":memory:", "--listen", "127.0.0.1:0", "--integration", id];
  const missing = await command([...args, "--password-file", passwordFile]);
  expect(missing).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/--password-file .*there is no such file/),
  });

  writeFileSync(passwordFile, "\ufefffrom a file\r\n");
  const stop = new AbortController();
  const opened = Promise.withResolvers<string>();
  const running = command([...args, "--password-file", passwordFile], { signal: stop.signal, print: opened.resolve });
  const [url = ""] = /http\S+/.exec(await opened.promise) ?? [];
  const authorization = `Basic ${Buffer.from(`${id}:from a file`).toString("base64")}`;
  const headers = { authorization, "content-type": "application/json" };
  expect(await fetch(`${url}/rpc`, { method: "POST", headers, body: "{}" })).toMatchObject({ status: 200 });
  stop.abort(new Error("^C"));
  await running;
});
