import { expect, test } from "vitest";
import { mqttDriver } from "../../../../src/source/mqtt/driver.ts";

const { schema, tag } = mqttDriver;

test("the address alone is enough, and the defaults are safe", () => {
  expect(schema.parse({ url: "mqtts://broker.local:8883" })).toEqual({
    url: "mqtts://broker.local:8883",
    requestRebirth: true,
    servers: [],
    verify: "full",
    alpn: [],
    qos: 1,
    session: { persistent: true, expiry: 86_400_000, receiveMaximum: 2_000 },
    keepalive: 60_000,
    connectTimeout: 10_000,
    protocolVersion: "auto",
    maxPayload: 1_048_576,
  });
});

test.each(["http://x", "mqtt://", "broker:1883", "mqtt://user:pw@broker", "mqtt://a b", "mqtt://x:99999"])(
  "%s is no address of a broker",
  (url) => {
    expect(schema.safeParse({ url }).success).toBe(false);
  },
);

test("a password never prints", () => {
  const options = schema.parse({ url: "mqtt://x", username: "gw1", password: "gw1-password" });
  expect(JSON.stringify(options)).not.toContain("gw1-password");
  expect(options.password?.reveal()).toBe("gw1-password");
});

test("a tag captures the names in its topic and the elements of [*] in its path", () => {
  expect(mqttDriver.captures?.(tag.parse({ topic: "a/{x}/{r...}", value: "$.l[*]" }))).toEqual([
    "x",
    "r",
    "i",
    "key",
    "i1",
  ]);
  expect(mqttDriver.captures?.(tag.parse({ topic: "a", value: "$.a[*].b.**", capture: { key: "$.a[*].k" } }))).toEqual([
    "key",
    "i",
    "i1",
    "i2",
  ]);
  expect(mqttDriver.captures?.(tag.parse({ topic: "a/+" }))).toEqual([]);
});

test.each([
  [{ topic: "a/{x}b" }, "topic"],
  [{ topic: "a", value: "$..x" }, "value"],
  [{ topic: "a", time: { at: "t" } }, "time.at"],
  [{ topic: "a", time: { at: "$.t", format: "unix" } }, "time.format"],
  [{ topic: "a", format: "xml" }, "format"],
  [{ topic: "a", retained: "yes" }, "retained"],
  [{ topic: "a", valeu: "$.t" }, ""],
  [{ topic: "a/{i}", value: "$[*]" }, "topic"],
])("%j is refused at %s", (text, path) => {
  const result = tag.safeParse(text);
  expect(result.error?.issues.map((issue) => issue.path.join("."))).toEqual([path]);
});
