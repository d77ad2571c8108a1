// Makes an OPC UA server answer like an impostor, and records the logins that it receives.
import {
  CreateSessionResponse,
  EndpointDescription,
  GetEndpointsResponse,
  UserNameIdentityToken,
  UserTokenPolicy,
  X509IdentityToken,
} from "node-opcua-client";
import type { OPCUAServer } from "node-opcua-server";

/** A secret that reached the server in any form. */
export interface SentSecret {
  readonly kind: "password" | "signature";
  /** The encryption algorithm; undefined: clear text. */
  readonly encryption: string | undefined;
}

export interface Impostor {
  /** Every password and every signature of a user's certificate that the server received. */
  readonly secrets: readonly SentSecret[];
  /** The certificate in the list of endpoints; undefined: the server's own. */
  listed: Uint8Array | undefined;
  /** The certificate in the CreateSession response; undefined: the server's own; empty: none. */
  withSession: Uint8Array | undefined;
  /**
   * From this GetEndpoints request on, the endpoints offer a login in clear text. The agent sends two requests before
   * it chooses, then one more.
   */
  weakensFrom: number;
  /** The function to pass to `opcuaServer`. */
  readonly meddle: (server: OPCUAServer) => void;
}

interface Channel {
  send_response(type: string, response: unknown, ...rest: readonly unknown[]): unknown;
}
interface Message {
  readonly request: { readonly userIdentityToken?: unknown; readonly userTokenSignature?: { signature?: Uint8Array } };
}
type Handler = (this: OPCUAServer, message: Message, channel: Channel) => unknown;

export function impostor(): Impostor {
  const secrets: SentSecret[] = [];
  let asked = 0;
  const before = (server: OPCUAServer, name: string, act: (message: Message, channel: Channel) => void) => {
    const handle = Reflect.get(server, name) as Handler; // the server's internal handler
    Reflect.set(server, name, function (this: OPCUAServer, message: Message, channel: Channel) {
      act(message, channel);
      return handle.call(this, message, channel);
    });
  };
  const answers = (channel: Channel, change: (response: unknown) => void) => {
    const send = channel.send_response.bind(channel);
    channel.send_response = (type, response, ...rest) => {
      change(response);
      return send(type, response, ...rest);
    };
  };
  const self: Impostor = {
    secrets,
    listed: undefined,
    withSession: undefined,
    weakensFrom: Number.POSITIVE_INFINITY,
    meddle(server) {
      before(server, "_on_GetEndpointsRequest", (_message, channel) => {
        asked++;
        answers(channel, (response) => {
          if (response instanceof GetEndpointsResponse) response.endpoints = changed(response.endpoints, self, asked);
        });
      });
      before(server, "_on_CreateSessionRequest", (_message, channel) => {
        answers(channel, (response) => {
          if (!(response instanceof CreateSessionResponse)) return;
          // The stack compares both lists.
          response.serverEndpoints = changed(response.serverEndpoints, self, asked);
          if (self.withSession) response.serverCertificate = Buffer.from(self.withSession);
        });
      });
      before(server, "_on_ActivateSessionRequest", ({ request: { userIdentityToken: token, userTokenSignature } }) => {
        if (token instanceof UserNameIdentityToken)
          secrets.push({ kind: "password", encryption: token.encryptionAlgorithm ?? undefined });
        if (token instanceof X509IdentityToken && userTokenSignature?.signature?.length)
          secrets.push({ kind: "signature", encryption: undefined });
      });
    },
  };
  return self;
}

function changed(
  endpoints: readonly EndpointDescription[] | null,
  { listed, weakensFrom }: Impostor,
  asked: number,
): EndpointDescription[] {
  const inClear = new UserTokenPolicy({ policyId: "bare", tokenType: 1, securityPolicyUri: noSecurity });
  return (endpoints ?? []).map((endpoint) => {
    const copy = new EndpointDescription(endpoint);
    if (listed) copy.serverCertificate = Buffer.from(listed);
    if (asked >= weakensFrom) copy.userIdentityTokens = [inClear];
    return copy;
  });
}

const noSecurity = "http://opcfoundation.org/UA/SecurityPolicy#None";
