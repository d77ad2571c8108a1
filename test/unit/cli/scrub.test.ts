// Removing known secrets from texts.
import fc from "fast-check";
import { expect, test } from "vitest";
import { scrubber, secretsIn } from "../../../src/cli/inspect/support-bundle.ts";
import { Secret } from "../../../src/core/secret.ts";
import { runs } from "../../support/property.ts";

test("a secret is found anywhere in a value and redacted in every usual form", () => {
  const value: Record<string, unknown> = { a: [{ b: new Secret("first-secret") }], c: new Secret("zwei/te+r") };
  value["self"] = value;
  const secrets = secretsIn(value);
  expect([...secrets]).toEqual(["first-secret", "zwei/te+r"]);
  fc.assert(
    fc.property(fc.constantFrom(...secrets), fc.string(), fc.string(), (secret, before, after) => {
      const bytes = Buffer.from(secret);
      const forms = [
        secret,
        encodeURIComponent(secret),
        ...(["base64", "base64url", "hex"] as const).map((encoding) => bytes.toString(encoding)),
        bytes.toString("hex").toUpperCase(),
      ];
      for (const form of forms) expect(scrubber(secrets)(`${before}${form}${after}`)).not.toContain(form);
    }),
    runs(100),
  );
});

test("a secret too short to be distinguished from other words is not redacted", () => {
  expect(scrubber(["x"])("x is max")).toBe("x is max");
});
