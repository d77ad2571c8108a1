import { expect, test } from "vitest";
import { isAllowedHost } from "../../../src/web/control.ts";

test.each(["localhost", "LOCALHOST:8421", "127.0.0.1", "127.0.0.1:8421", "[::1]", "[::1]:8421"])(
  "loopback is answered under %s",
  (header) => {
    expect(isAllowedHost(header, "127.0.0.1", [])).toBe(true);
  },
);

test.each([
  undefined,
  "",
  "evil.example",
  "evil.example:8421",
  "127.0.0.1.evil.example",
  "localhost.evil.example",
  "evil@localhost",
  "localhost:8421:1",
  "10.0.0.9",
  "[::2]",
  "localhost/",
])("%s is a name that somebody else may have pointed here", (header) => {
  expect(isAllowedHost(header, "127.0.0.1", [])).toBe(false);
});

test("requests for the listen address and for allowed names are answered", () => {
  expect(isAllowedHost("10.0.0.9:8421", "10.0.0.9", [])).toBe(true);
  expect(isAllowedHost("Gateway.plant:8421", "10.0.0.9", ["gateway.plant"])).toBe(true);
  expect(isAllowedHost("other.plant:8421", "10.0.0.9", ["gateway.plant"])).toBe(false);
});

test("when listening on every address, any address is answered and no name", () => {
  expect(isAllowedHost("192.168.1.7:8421", "0.0.0.0", [])).toBe(true);
  expect(isAllowedHost("[fe80::1]:8421", "::", [])).toBe(true);
  expect(isAllowedHost("evil.example:8421", "0.0.0.0", [])).toBe(false);
});
