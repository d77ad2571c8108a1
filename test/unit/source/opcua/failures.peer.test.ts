// Every failure of an OPC UA source that the server can cause, as the user sees it: real sockets and a real server.
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { DataType } from "node-opcua-client";
import { expect, test } from "vitest";
import { isAgentError } from "../../../../src/core/errors.ts";
import { opcuaOptions } from "../../../../src/source/opcua/config/options.ts";
import { chooseEndpoint, type EndpointOffer } from "../../../../src/source/opcua/session/endpoint.ts";
import { sourceError } from "../../../../src/source/opcua/stack/failure.ts";
import { convert } from "../../../../src/source/opcua/types/value.ts";
import { type FailureRow, failureOf, failureTable } from "../../../support/failure-table.ts";
import { lineNamespace, type OpcuaServer, opcuaServer, user } from "../../../support/opcua-server.ts";
import { openOpcuaSource } from "../../../support/opcua-source.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const none = { security: { mode: "none" } };

interface Place {
  readonly stateDir: string;
  /** With and without security, for anonymous users and one user name. */
  readonly server: OpcuaServer;
}

/** The error of the connection, or the reason of the first bad reading. */
async function read(
  { stateDir }: Place,
  options: Readonly<Record<string, unknown>>,
  tag: Readonly<Record<string, unknown>> = { node: `nsu=${lineNamespace};s=Temp` },
) {
  const enough = new AbortController();
  const error = await failureOf(async () => {
    await using source = await openOpcuaSource({
      stateDir,
      options: { timeout: "2s", ...options },
      tags: [tag],
      final: true,
    });
    for await (const { readings } of source.deliveries(enough.signal))
      for (const { reason } of readings) if (reason !== undefined) throw new Error(reason);
  });
  enough.abort();
  return error instanceof Error && !isAgentError(error) ? error.message : error;
}

/** Reads from a server that handles each connection with `serve`. */
async function against(place: Place, serve: (socket: Socket) => void): Promise<unknown> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    serve(socket);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  try {
    return await read(place, { url: `opc.tcp://127.0.0.1:${port}`, timeout: "500ms" });
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

const policy = (name: string) => `http://opcfoundation.org/UA/SecurityPolicy#${name}`;
function endpoint(
  securityMode: number,
  policyName: string,
  tokens: readonly number[],
  tokenPolicy = "",
): EndpointOffer {
  return {
    endpointUrl: "opc.tcp://plc:4840",
    securityMode,
    securityPolicyUri: policy(policyName),
    transportProfileUri: null,
    userIdentityTokens: tokens.map((tokenType) => ({
      tokenType,
      securityPolicyUri: tokenPolicy && policy(tokenPolicy),
    })),
  };
}
const clear = endpoint(1, "None", [0, 1, 2], "None");
const strong = endpoint(3, "Basic256Sha256", [1]);

/** The endpoint that is chosen from these. */
function choosing(offered: readonly EndpointOffer[], options: object = {}): () => Promise<unknown> {
  return () =>
    failureOf(async () => chooseEndpoint(offered, opcuaOptions.parse({ url: "opc.tcp://plc:4840", ...options })));
}

const login = { username: "gw1", password: "x" };
const statuses = [
  "BadUserAccessDenied",
  "BadIdentityTokenInvalid",
  "BadUserSignatureInvalid",
  "BadSecurityChecksFailed",
  "BadCertificateUriInvalid",
  "BadCertificateHostNameInvalid",
  "BadCertificateTimeInvalid",
  "BadCertificatePolicyCheckFailed",
  "BadCertificateRevoked",
  "BadCertificateUseNotAllowed",
  "BadSecurityModeRejected",
  "BadSecurityPolicyRejected",
  "BadServiceUnsupported",
  "BadTooManySessions",
  "BadMaxConnectionsReached",
  "BadTcpEndpointUrlInvalid",
  "BadServerHalted",
  "BadTimeout",
  "BadSomethingNew",
];

const rows = (place: Place): readonly FailureRow[] => {
  const { server, stateDir } = place;
  const key = join(stateDir, "pki/own/private/private_key.pem");
  return [
    ["nothing listens", () => read(place, { url: "opc.tcp://127.0.0.1:1" })],
    ["a server that closes the connection", () => against(place, (socket) => socket.end())],
    ["a server that never answers", () => against(place, () => {})],
    [
      "a web server",
      () => against(place, (socket) => socket.once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"))),
    ],
    ["only endpoints without security", choosing([clear])],
    ["no endpoint at all", choosing([])],
    ["no endpoint without security", choosing([strong], none)],
    ["no such mode and policy", choosing([clear, strong], { security: { mode: "sign", policy: "Basic256Sha256" } })],
    ["no anonymous users", choosing([strong])],
    ["no user names", choosing([endpoint(3, "Basic256Sha256", [0])], login)],
    ["a password in clear text", choosing([clear], { ...none, ...login })],
    [
      "a user's certificate without a proof",
      choosing([clear], { ...none, userCertificate: { certFile: "/c.pem", keyFile: "/k.pem" } }),
    ],
    ["a server that is not trusted", () => read(place, { url: server.url })],
    [
      "a wrong password",
      () =>
        read(place, { url: server.url, ...none, username: user.name, password: "wrong", allowInsecurePassword: true }),
    ],
    [
      "a user's certificate that is not there",
      () => read(place, { url: server.url, userCertificate: { certFile: "/nowhere/c.pem", keyFile: key } }),
    ],
    [
      "a user's certificate that is none",
      () => read(place, { url: server.url, userCertificate: { certFile: key, keyFile: key } }),
    ],
    ...statuses.map(
      (status): FailureRow => [
        `the server answers ${status}`,
        async () => sourceError(new Error(status), "connecting"),
      ],
    ),
    [
      "a node that is not there",
      () => read(place, { url: server.url, ...none }, { node: `nsu=${lineNamespace};s=Nowhere` }),
    ],
    ["a path that is not there", () => read(place, { url: server.url, ...none }, { path: "Line/Nowhere" })],
    [
      "a namespace that is not there",
      () => read(place, { url: server.url, ...none }, { node: "nsu=urn:nowhere;s=Temp" }),
    ],
    ...Object.entries({ DateTime: new Date("1601-01-01"), ByteString: Buffer.from("x"), NodeId: "i=1" }).map(
      ([name, value]): FailureRow => [
        `a value of type ${name}`,
        async () => {
          const dataType = DataType[name as keyof typeof DataType];
          const converted = convert({ dataType, arrayType: 0, value });
          return "reason" in converted ? converted.reason : undefined;
        },
      ],
    ),
    [
      "a value of bad quality",
      async () => {
        server.break("Temp");
        return await read(place, { url: server.url, ...none });
      },
    ],
  ];
};

test("the table of failures", { timeout: 60_000 }, async () => {
  using folder = temporaryFolder();
  await using server = await opcuaServer({ folder: folder.file("server"), secure: true });
  const place = { stateDir: folder.file("state"), server };
  await expect(await failureTable(rows(place))).toMatchFileSnapshot("../../../fixtures/failures/opcua.txt");
});
