// Credentials that the other side repeats in its answers.
import { expect, test } from "vitest";
import { basicAuthorization, withoutCredentials } from "../../../src/upload/client/credentials.ts";

test("a header, a token and a password in an answer are redacted, whatever else the text has", () => {
  const basic = basicAuthorization("me", 'pass:"w0rd/ü');
  const echo = {
    headers: { authorization: basic },
    decoded: 'me:pass:"w0rd/ü',
    query: encodeURIComponent('pass:"w0rd/ü'),
  };
  for (const text of [basic, JSON.stringify(echo), `no such user me with pass:"w0rd/ü`]) {
    const shown = withoutCredentials(text, basic);
    expect(shown).not.toMatch(/w0rd/);
    expect(shown).not.toContain(basic.slice("Basic ".length));
  }
  expect(withoutCredentials("bad token eyJhbGci.x.y", "Bearer eyJhbGci.x.y")).toBe("bad token ***");
});

test("a secret too short to be distinguished from other words is not redacted", () => {
  expect(withoutCredentials("no such user", basicAuthorization("me", "us"))).toBe("no such user");
});
