// The first steps with an MQTT broker: init, check --online, test, run, status.
// The brokers are mosquitto and aedes, with a password and with TLS under a private certificate authority.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { startAgent } from "../support/agent-process.ts";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { openMosquitto } from "../support/mosquitto.ts";
import { openMqttBroker } from "../support/mqtt-broker.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tls = (name: string) => join(import.meta.dirname, "../fixtures/tls", name);

interface Broker extends AsyncDisposable {
  readonly url: string;
  readonly username: string;
  readonly password: string;
  publish(topic: string, payload: string): Promise<unknown>;
}

async function mosquitto(secure: boolean): Promise<Broker> {
  const config = [`cafile ${tls("ca.pem")}`, `certfile ${tls("broker.pem")}`, `keyfile ${tls("broker-key.pem")}`];
  const broker = await openMosquitto(secure ? { protocol: "mqtts", config } : {});
  const publisher = await broker.publisher();
  const { url, username } = broker;
  return {
    url,
    username,
    password: broker.password,
    publish: (topic, payload) => publisher.publishAsync(topic, payload, { qos: 1 }),
    [Symbol.asyncDispose]: () => broker[Symbol.asyncDispose](),
  };
}

async function aedes(secure: boolean): Promise<Broker> {
  const credentials = { username: "gw1", password: "gw1-password" };
  const identity = { cert: readFileSync(tls("broker.pem")), key: readFileSync(tls("broker-key.pem")) };
  return await openMqttBroker({ credentials, ...(secure && { tls: identity }) });
}

test.concurrent.each([
  ["mosquitto with a password", false, mosquitto],
  ["mosquitto with TLS of a private authority", true, mosquitto],
  ["aedes with a password", false, aedes],
  ["aedes with TLS of a private authority", true, aedes],
] as const)(
  "init, check --online, test, run and status work at the first attempt, and say what is wrong where it is: %s",
  async (_, secure, open) => {
    using folder = temporaryFolder();
    await using service = await testService();
    await using broker = await open(secure);
    using _publishing = often(() => broker.publish("press/4/env", '{"temp":21.5,"run":true}'));
    writeFileSync(folder.file("service_password"), `${password}\n`);
    writeFileSync(folder.file("right"), `${broker.password}\n`);
    writeFileSync(folder.file("wrong"), "wrong\n");
    writeFileSync(folder.file("plant-ca.pem"), readFileSync(tls("ca.pem")));
    const file = folder.file("tagferry.yaml");
    const run = (...args: readonly string[]) =>
      command(args, { variables: { STATE_DIRECTORY: folder.file("data"), TAGFERRY_CONFIG: file } });
    const init = (secret: string, url: string, ...more: readonly string[]) =>
      run(
        ...`init --yes --name gw1 --password-file service_password --integration ${integration}`.split(" "),
        ...`--service ${service.url} --source ${url} --username ${broker.username}`.split(" "),
        "--source-password-file",
        secret,
        ...more,
      );
    const ca = secure ? ["--ca-file", "plant-ca.pem"] : [];

    // `init` with mistakes first. Each error names the mistake and the remedy, and writes no file.
    const refused = await init("wrong", broker.url, ...ca);
    expect(refused.status).toBe(77);
    expect(refused.stderr).toMatch(
      /refused the connection as user gw1, client \S+: (not authorized|bad user name or password)/,
    );
    expect(refused.stderr).toContain("check the credentials: user name, password");
    if (secure) {
      const untrusted = await init("right", broker.url);
      expect(untrusted.status).toBe(77);
      expect(untrusted.stderr).toContain("the issuer of its certificate is not trusted");
      expect(untrusted.stderr).toContain("set caFile to the PEM file with the certificate of the issuer");
      expect(untrusted.stderr).not.toContain("check the credentials");
      const plain = await init("right", broker.url.replace("mqtts:", "mqtt:"));
      expect(plain.status).toBe(69);
      expect(plain.stderr).toContain("this port speaks TLS, the URL does not");
      expect(plain.stderr).toContain(`write ${broker.url}`);
    }
    const written = await init("right", broker.url, ...ca);
    expect(written.stderr).not.toContain("tagferry:");
    expect(written.status).toBe(0);
    expect(written.stdout).toContain(`${file} is written: 1 source, 2 tags`);
    expect(written.stdout).toMatch(/^mqtt reads \S+ = (21\.5|1|true)/m);
    expect(parse(readFileSync(file, "utf8")).sources.mqtt).toMatchObject({
      url: broker.url,
      username: broker.username,
      password: "${file:right}",
      ...(secure && { caFile: folder.file("plant-ca.pem") }),
    });
    expect(readFileSync(file, "utf8")).not.toContain(broker.password);

    const online = await run("check", "--online");
    expect(online.stdout).toMatch(/service: answers, \d+ ms\nmqtt: answers, \d+ ms\n/);
    expect({ status: online.status, stderr: online.stderr }).toEqual({ status: 0, stderr: "" });

    const tested = await run("test", "--once");
    expect(tested.stdout).toMatch(/press[./]4[./]env[./]temp +21\.5/);
    expect(tested.status).toBe(0);

    const configuration = readFileSync(file, "utf8").replaceAll("127.0.0.1:8421", "127.0.0.1:0");
    await using agent = await startAgent({
      folder: folder.path,
      configuration,
      env: { STATE_DIRECTORY: folder.file("data") },
    });
    await eventually(async () => (await agent.status()).upload.points > 0);
    const status = await run("status", "--url", agent.page);
    expect(status.status).toBe(0);
    expect(status.stdout).toContain("Data arrives and is delivered.");
    expect(status.stdout).toMatch(/mqtt +.*online/);

    const security = await run("security", "--url", agent.page);
    expect(security.stdout).toMatch(
      secure ? /good +source mqtt +TLS; issuer and name are verified/ : /does not leave this machine/,
    );
    writeFileSync(file, configuration.replace("caFile:", "verify: none    #"));
    if (secure) {
      expect((await run("security")).stdout).toMatch(
        /weak +source mqtt +TLS, but the certificate of the broker is not verified/,
      );
      expect((await run("check")).stdout).toContain(
        "sources.mqtt.verify  is none: the certificate of the broker is not verified",
      );
    }
  },
  240_000,
);

/** Calls `work` again and again, as a device publishes. */
function often(work: () => Promise<unknown>): Disposable {
  const timer = setInterval(() => void work().catch(() => {}), 200);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
