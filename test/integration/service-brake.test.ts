import { request } from "node:http";
import { expect, test } from "vitest";
import { Secret } from "../../src/core/secret.ts";
import type { LocalServiceOptions } from "../../src/service/config/options.ts";
import { eventually } from "../support/eventually.ts";
import { has } from "../support/platform.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { basic, integration, password, testService } from "../support/service.ts";

const integrations = [
  { id: integration, password: new Secret(password), clientId: "me", clientSecret: new Secret("s3cret"), grants: [] },
];
const body = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "integration.insert",
  params: { integration, data: { times: [], series: {} } },
});
const wrong = (n: number) => basic(integration, `wrong${n}`);

/** A service whose clock stands still. Calls can come from any loopback address. */
async function braked(throttle: LocalServiceOptions["throttle"] = "off") {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const service = await testService({ integrations, throttle }, runtime);
  const call = (authorization: string, from = "127.0.0.1") =>
    new Promise<{ readonly status: number | undefined; readonly retryAfter: string | undefined }>((resolve, reject) => {
      const headers = { "content-type": "application/json", authorization };
      const sent = request(`${service.url}/rpc`, { method: "POST", headers, localAddress: from, agent: false }, (got) =>
        resolve({ status: got.resume().statusCode, retryAfter: got.headers["retry-after"] }),
      );
      sent.on("error", reject);
      sent.end(body);
    });
  const token = async (secret: string) =>
    (
      await fetch(`${service.url}/oauth/token`, {
        method: "POST",
        body: new URLSearchParams({
          grant_type: "client_credentials",
          client_id: "me",
          client_secret: secret,
          audience: service.url,
        }),
      })
    ).status;
  return { clock, runtime, service, call, token, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() };
}

test("of many wrong passwords from one address a few are refused at once, then one a second, and the rest with 429", async () => {
  await using world = await braked();
  const refused: (number | undefined)[] = [];
  const calls = Array.from({ length: 40 }, async (_, n) => {
    const { status, retryAfter } = await world.call(wrong(n));
    if (status === 429) expect(retryAfter).toBe("8");
    refused.push(status);
  });
  // Ten are answered at once, eight wait, and 22 exceed the limit.
  await eventually(() => refused.length === 32);
  expect(refused.toSorted((a = 0, b = 0) => a - b)).toEqual([...Array(10).fill(401), ...Array(22).fill(429)]);

  for (let second = 1; second <= 8; second++) {
    await world.clock.advance(1_000);
    await eventually(() => refused.length === 32 + second);
  }
  await Promise.all(calls);
  expect(refused.slice(32)).toEqual(Array(8).fill(401));
});

test.runIf(has.loopbackAddresses)(
  "the right password is accepted at once while wrong ones are delayed, from the same address and from others",
  async () => {
    await using world = await braked();
    const addresses = Array.from({ length: 60 }, (_, i) => `127.0.1.${i + 1}`);
    const attack = addresses.flatMap((from, n) =>
      Array.from({ length: 3 }, (_, i) => world.call(wrong(n * 3 + i), from)),
    );
    attack.push(...Array.from({ length: 40 }, (_, n) => world.call(wrong(n))));
    await eventually(() => world.clock.sleeping > 10);

    // The clock stands still, so a call that had to wait would never be answered.
    for (const from of ["127.0.0.1", "127.0.1.1", "127.0.0.9"])
      expect(await world.call(basic(integration, password), from)).toMatchObject({ status: 200 });
    expect(await world.token("s3cret")).toBe(200);

    await world.clock.advance(30_000);
    expect(new Set((await Promise.all(attack)).map(({ status }) => status))).toEqual(new Set([401, 429]));
  },
);

test("wrong secrets of a client do not use up the token requests of the one that has the right secret", async () => {
  await using world = await braked("queue");
  for (let n = 0; n < 10; n++) expect(await world.token(`wrong${n}`)).toBe(401);
  const held = Array.from({ length: 20 }, (_, n) => world.token(`wrong${n}`));
  await eventually(() => world.clock.sleeping === 8);

  expect(await world.token("s3cret")).toBe(200);

  await world.clock.advance(8_000);
  expect(new Set(await Promise.all(held))).toEqual(new Set([401, 429]));
});

test("a client with a wrong password every five seconds is refused at once each time", async () => {
  await using world = await braked();
  for (let n = 0; n < 30; n++) {
    expect(await world.call(wrong(0))).toMatchObject({ status: 401 });
    await world.clock.advance(5_000);
  }
});

test("requests without credentials are challenged at once, however many", async () => {
  await using world = await braked();
  const replies = await Promise.all(Array.from({ length: 30 }, () => world.call("")));

  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([401]));
});

test.runIf(has.loopbackAddresses)(
  "the log names the address that tries wrong secrets, and none of the secrets",
  async () => {
    await using world = await braked();
    await world.call(wrong(1), "127.0.0.7");

    const line = world.runtime.lines.find(({ level }) => level === "warn");
    expect(line).toMatchObject({ message: "wrong credentials", fields: { part: "service", address: "127.0.0.7" } });
    expect(JSON.stringify(world.runtime.lines)).not.toContain("wrong1");
  },
);
