import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { channelError, refusalOf, sourceError } from "../../../../src/source/opcua/stack/failure.ts";

test("refusals of the server are distinguished from failures of the network", () => {
  expect(refusalOf(new Error("serviceResult = BadSessionIdInvalid (0x80250000)"))).toBe("BadSessionIdInvalid");
  expect(refusalOf(new Error("serviceResult = BadUserAccessDenied (0x801f0000)"))).toBe("BadUserAccessDenied");
  for (const lost of ["Invalid Channel BadConnectionClosed", "BadTimeout", "BadTcpInternalError", "Connection Break"])
    expect(refusalOf(new Error(lost))).toBeUndefined();
});

test("a refusal names a remedy and a command that shows more", () => {
  expect(sourceError(new Error("BadIdentityTokenRejected (0x80210000)"), "logging in")).toMatchObject({
    code: "SOURCE_REFUSED",
    message: expect.stringMatching(/^logging in: the server refuses this user or password,/),
    hint: expect.stringContaining("tagferry check --online"),
  });
  expect(sourceError(new Error("BadSecurityChecksFailed"), "connecting").hint).toContain(
    "trust the agent's certificate at the server",
  );
  expect(sourceError(new Error("BadSecurityPolicyRejected"), "connecting").hint).toContain("tagferry browse URL");
});

test.each([
  ["connect ECONNREFUSED 10.0.0.1:4840", "nothing listens there (ECONNREFUSED)"],
  ["getaddrinfo ENOTFOUND plc", "the name of the host is not known (ENOTFOUND)"],
  [
    "The connection cannot be established with server opc.tcp://x .\n connect EHOSTUNREACH",
    "no route to this host (EHOSTUNREACH)",
  ],
  ["Timeout(A) in waiting for data on socket(timeout was = 1000 ms)", "no answer in time"],
  ["socket has been disconnected by third party", "the server hangs up"],
  ["ACK: failed to decode ERR response (malformed or truncated)", "what answers there does not speak OPC UA"],
  ["ServiceFault serviceResult = BadOutOfRange (0x803c0000) at x.js:13", "the server answers BadOutOfRange"],
  ["performMessageTransaction: No SecureChannel , internal state", "the connection was cut"],
  ["Internal Error", "the connection failed, no reason given"],
])("the stack's words stay in the cause: %s", (text, message) => {
  const cause = new Error(text);
  expect(sourceError(cause, "connecting")).toMatchObject({
    code: "SOURCE_UNREACHABLE",
    message: `connecting: ${message}`,
    cause,
  });
});

test("an AgentError is not converted again", () => {
  const error = new AgentError("SOURCE_PROTOCOL", "x");
  expect(sourceError(error, "reading")).toBe(error);
});

test("a server that refuses the agent's certificate, or closes the connection, is reported with the certificate to trust there", () => {
  const now = new Date("2026-03-01T00:00:00Z");
  const own = { thumbprint: "ab12", certificateFile: "/state/own.pem" };
  for (const text of ["BadSecurityChecksFailed", "The connection may have been rejected by server, Err = (socket)"])
    expect(channelError(sourceError(new Error(text), "connecting"), own, "sign, Basic256", now)).toMatchObject({
      code: "SOURCE_REFUSED",
      message: expect.stringMatching(/trust.*ab12, \/state\/own\.pem \(tagferry trust list/),
    });
  const late = channelError(
    sourceError(new Error("BadCertificateTimeInvalid"), "connecting"),
    own,
    "sign, Basic256",
    now,
  );
  expect(String(late)).toContain("this clock says 2026-03-01T00:00:00.000Z");
  const unreachable = sourceError(new Error("connect ECONNREFUSED"), "connecting");
  expect(channelError(unreachable, own, "sign, Basic256", now)).toBe(unreachable);
  const silent = sourceError(new Error("Timeout(A) in waiting for data on socket"), "connecting");
  expect(channelError(silent, own, "sign, Basic256", now)).toMatchObject({
    code: "SOURCE_UNREACHABLE",
    message:
      "the server has just listed sign, Basic256, but does not answer a request to open such a channel; it may not support it",
    hint: expect.stringContaining("browse URL --endpoints"),
  });
});

test("a message that is too large is reported with its limit, and not as a network fault", () => {
  const error = sourceError(new Error("max message size exceeded: 33554432 : total message size 40000000"), "Read");
  expect(error).toMatchObject({
    message: "Read: the server sent a message of more than 32 MiB",
    hint: "leave large arrays and images out of the tags, or let the server send larger messages",
  });
});
