import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { channelError, refusalOf, sourceError } from "../../../../src/source/opcua/failure.ts";

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

test("a server that refuses the agent's certificate, or hangs up on it, is told with the certificate to trust there", () => {
  const own = { thumbprint: "ab12", certificateFile: "/state/own.pem" };
  for (const text of ["BadSecurityChecksFailed", "The connection may have been rejected by server, Err = (socket)"])
    expect(channelError(sourceError(new Error(text), "connecting"), own)).toMatchObject({
      code: "SOURCE_REFUSED",
      message: expect.stringMatching(/trust.*ab12, \/state\/own\.pem$/),
    });
  const unreachable = sourceError(new Error("connect ECONNREFUSED"), "connecting");
  expect(channelError(unreachable, own)).toBe(unreachable);
});
