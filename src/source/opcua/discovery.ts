// What endpoints a server has, and which of them is used.
import { createHash } from "node:crypto";
import type { EndpointDescription } from "node-opcua-client";
import { AgentError } from "../../core/errors.ts";
import { bounded, createClient, hangUp, type LinkOptions } from "./client.ts";
import { chooseEndpoint, securityOf } from "./endpoint.ts";
import type { Stack } from "./stack.ts";

/** The endpoints of a server. They are public: asked for over a channel without security, as discovery is meant to be. */
export async function discover(stack: Stack, link: LinkOptions, signal: AbortSignal): Promise<EndpointDescription[]> {
  const { url, timeout } = link.options;
  const client = createClient(stack, link, undefined);
  try {
    return await bounded(`asking ${url} for its endpoints`, timeout, signal, async () => {
      await client.connect(url);
      return client.getEndpoints();
    });
  } finally {
    await hangUp(client);
  }
}

/** Names whom we are connected to, as whom and how: what a session on the server belongs to. */
export function connectionDigest({ options, pki }: LinkOptions, endpoint: EndpointDescription): string {
  const user = options.username ?? options.userCertificate?.certFile ?? "";
  const parts = [options.url, user, securityOf(endpoint), pki.thumbprint];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

/** The endpoint to use, its certificate checked. Rejects as `chooseEndpoint` and `Pki.verify` do. */
export async function findEndpoint(stack: Stack, link: LinkOptions, signal: AbortSignal): Promise<EndpointDescription> {
  const endpoint = chooseEndpoint(await discover(stack, link, signal), link.options);
  if (endpoint.securityMode !== stack.ua.MessageSecurityMode.None) {
    if (!endpoint.serverCertificate?.length)
      throw new AgentError("SOURCE_PROTOCOL", `${link.options.url} offers security without a certificate`);
    await link.pki.verify(endpoint.serverCertificate);
  }
  return endpoint;
}
