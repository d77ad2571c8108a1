import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { refusalOf, sourceError } from "../../../../src/source/opcua/failure.ts";

test("what the server refuses is told from what the network swallowed", () => {
  expect(refusalOf(new Error("serviceResult = BadSessionIdInvalid (0x80250000)"))).toBe("BadSessionIdInvalid");
  expect(refusalOf(new Error("serviceResult = BadUserAccessDenied (0x801f0000)"))).toBe("BadUserAccessDenied");
  for (const lost of ["Invalid Channel BadConnectionClosed", "BadTimeout", "BadTcpInternalError", "Connection Break"])
    expect(refusalOf(new Error(lost))).toBeUndefined();
});

test("a refusal says what the operator can do, anything else stays unreachable with its text", () => {
  expect(sourceError(new Error("BadIdentityTokenRejected (0x80210000)"), "logging in")).toMatchObject({
    code: "SOURCE_REFUSED",
    message: "logging in: the server refuses this user or password (BadIdentityTokenRejected (0x80210000))",
  });
  expect(sourceError(new Error("BadSecurityChecksFailed"), "connecting").message).toContain(
    "trust its certificate there",
  );
  expect(sourceError(new Error("connect\n  ECONNREFUSED"), "connecting")).toMatchObject({
    code: "SOURCE_UNREACHABLE",
    message: "connecting: connect ECONNREFUSED",
  });
});

test("an error that is ours already stays as it is", () => {
  const error = new AgentError("SOURCE_PROTOCOL", "x");
  expect(sourceError(error, "reading")).toBe(error);
});
