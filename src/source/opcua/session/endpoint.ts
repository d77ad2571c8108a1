// Maps security modes and policies between the configuration and the protocol, and chooses an endpoint.
import { credentialsHint } from "../../../core/errors.ts";
import { deprecatedPolicies, type OpcuaOptions, securityPolicies } from "../config/options.ts";
import { offers, refusal } from "../stack/failure.ts";

/** MessageSecurityMode (OPC 10000-4, 7.20). */
export const modes = { none: 1, sign: 2, signAndEncrypt: 3 } as const;

const prefix = "http://opcfoundation.org/UA/SecurityPolicy#";

export function policyUri(name: string): string {
  return prefix + name;
}

/** Empty if the endpoint has no policy. */
export function policyName(uri: string | null): string {
  return uri?.split("#")[1] ?? "";
}

/** The fields of an EndpointDescription (OPC 10000-4, 7.14) that the agent uses. */
export interface EndpointOffer {
  readonly endpointUrl: string | null;
  /** MessageSecurityMode: 1 none, 2 sign, 3 sign and encrypt. */
  readonly securityMode: number;
  readonly securityPolicyUri: string | null;
  readonly transportProfileUri: string | null;
  readonly userIdentityTokens: readonly TokenPolicy[] | null;
}
export interface TokenPolicy {
  /** UserTokenType: 0 anonymous, 1 user name, 2 certificate. */
  readonly tokenType: number;
  readonly securityPolicyUri: string | null;
}

const modeNames: Readonly<Record<number, string>> = { 1: "none", 2: "sign", 3: "signAndEncrypt" };
/** Ordered from weakest to strongest. */
const policies: readonly string[] = [...deprecatedPolicies, ...securityPolicies];
/** RSA with PKCS #1 1.5 padding can be broken and does not protect a password. */
const unsafeForPasswords = ["Basic128", "Basic128Rsa15"];

/** Example: `signAndEncrypt, Basic256Sha256`. */
export function securityOf(endpoint: EndpointOffer): string {
  return `${modeNames[endpoint.securityMode] ?? "invalid"}, ${policyName(endpoint.securityPolicyUri)}`;
}

/** Lists the offered security as text: `signAndEncrypt, Basic256Sha256; none (clear text)`. */
function offeredIn(endpoints: readonly EndpointOffer[]): string {
  const offers = endpoints.map((each) => (each.securityMode === modes.none ? "none (clear text)" : securityOf(each)));
  return [...new Set(offers)].join("; ");
}

function wantedIn(security: OpcuaOptions["security"]): string {
  if (!security) return "an endpoint with security";
  if (security.mode === "none") return "an endpoint without security";
  return security.policy === undefined ? `${security.mode} with any policy` : `${security.mode}, ${security.policy}`;
}

/**
 * The strongest endpoint that fits the options. Takes one without security only if `security` requires it. Throws
 * `SOURCE_REFUSED` if none fits (the message lists the offers), or if the password would travel in clear text.
 */
export function chooseEndpoint<E extends EndpointOffer>(offered: readonly E[], options: OpcuaOptions): E {
  const { security, url } = options;
  if (offered.length === 0)
    throw refusal(
      `${url} lists no endpoints, nor does the address that it knows of itself`,
      "describe the endpoint: security: { mode: none }, or { mode, policy, serverCertificate }",
    );
  const secure = offered
    .filter(({ transportProfileUri: uri }) => !uri || uri.endsWith("/uatcp-uasc-uabinary"))
    .filter(({ securityPolicyUri: uri }) => policies.includes(policyName(uri)))
    .filter(({ securityPolicyUri: uri }) => security?.policy === policyName(uri) || !isDeprecated(policyName(uri)))
    .filter(({ securityMode }) => (security ? securityMode === modes[security.mode] : securityMode > modes.none))
    .filter(({ securityPolicyUri: uri }) => security?.policy === undefined || policyName(uri) === security.policy);
  if (secure.length === 0) {
    const advice = security
      ? ""
      : "; without security, or with a deprecated policy, it is read only where the configuration says so: " +
        "security: { mode: none }";
    throw refusal(`${url} does not offer ${wantedIn(security)}; it offers ${offeredIn(offered)}${advice}`, offers);
  }
  const tokenType = tokenTypeOf(options);
  const fitting = secure.filter((endpoint) => endpoint.userIdentityTokens?.some((t) => t.tokenType === tokenType));
  const best = fitting.toSorted((a, b) => rank(b) - rank(a))[0];
  if (!best)
    throw refusal(
      `${url} ${refusals[tokenType]} over ${offeredIn(secure)}`,
      tokenType === 0 ? credentialsHint : offers,
    );
  if (tokenType === 2 && !provesPossession(best))
    throw refusal(
      `${url} accepts a user's certificate over ${offeredIn([best])} without a proof that it is the user's; ` +
        "choose an endpoint with security",
      offers,
    );
  if (tokenType === 1 && !options.allowInsecurePassword && passwordInClear(best))
    throw refusal(
      `${url} would receive the password in clear text over ${offeredIn([best])}; ` +
        "use an endpoint with security, or set allowInsecurePassword: true",
      offers,
    );
  return best;
}

const refusals = {
  0: "requires a login; set username and password, or userCertificate,",
  1: "accepts no user names",
  2: "accepts no certificates of users",
} as const;

const loginNames: Readonly<Record<number, string>> = { 0: "anonymous", 1: "username", 2: "certificate", 3: "token" };

export function loginsOf({ userIdentityTokens }: Pick<EndpointOffer, "userIdentityTokens">): string[] {
  return [...new Set((userIdentityTokens ?? []).map(({ tokenType }) => loginNames[tokenType] ?? "unknown"))];
}

/** Whether the endpoint has security that the agent uses without being configured for it. */
export function isSecure({ securityMode, securityPolicyUri }: EndpointOffer): boolean {
  const policy = policyName(securityPolicyUri);
  return securityMode > modes.none && policies.includes(policy) && !isDeprecated(policy);
}

/** Why the configured endpoint is insecure. Undefined if it is secure. */
export function weaknessOf({ securityMode, securityPolicyUri }: EndpointOffer): string | undefined {
  if (securityMode === modes.none) return "no security: everything can be read and changed on the way";
  const policy = policyName(securityPolicyUri);
  return isDeprecated(policy) ? `the security policy ${policy} is deprecated: it can be broken` : undefined;
}

function isDeprecated(policy: string): boolean {
  return deprecatedPolicies.some((name) => name === policy);
}

/** A user's certificate proves the user's identity only if its key signs data from the server. */
function provesPossession(endpoint: EndpointOffer): boolean {
  return (endpoint.userIdentityTokens ?? []).some((token) => token.tokenType === 2 && hasPolicy(endpoint, token));
}

function rank({ securityMode, securityPolicyUri }: EndpointOffer): number {
  return securityMode * 10 + policies.indexOf(policyName(securityPolicyUri));
}

/** Whether an eavesdropper can read a password: neither the channel nor the token is encrypted. */
export function passwordInClear(endpoint: EndpointOffer): boolean {
  if (endpoint.securityMode === modes.signAndEncrypt) return false;
  const token = loginToken(endpoint, { username: "", userCertificate: undefined });
  if (token === undefined || !hasPolicy(endpoint, token)) return true;
  return unsafeForPasswords.includes(tokenPolicyName(endpoint, token));
}

/**
 * The token policy to log in with; undefined if the endpoint has none. The stack's own choice may vary. In an encrypted
 * channel, prefers an unencrypted password: some servers accept nothing else. Otherwise takes the strongest.
 */
export function loginToken<E extends EndpointOffer>(
  endpoint: E,
  options: Pick<OpcuaOptions, "username" | "userCertificate">,
): NonNullable<E["userIdentityTokens"]>[number] | undefined {
  const wanted = tokenTypeOf(options);
  const tokens = (endpoint.userIdentityTokens ?? []).filter(({ tokenType }) => tokenType === wanted);
  const bare = tokens.find(({ securityPolicyUri: uri }) => !uri || policyName(uri) === "None");
  if (wanted === 1 && endpoint.securityMode === modes.signAndEncrypt && bare) return bare;
  const strength = (token: TokenPolicy) => policies.indexOf(tokenPolicyName(endpoint, token));
  return tokens.toSorted((a, b) => strength(b) - strength(a))[0];
}

/**
 * Whether only a verified server certificate protects the login from an impostor. This applies to channels without
 * security: the certificate encrypts the password, or the user's certificate signs it.
 */
export function loginNeedsCertificate(endpoint: EndpointOffer, options: OpcuaOptions): boolean {
  if (endpoint.securityMode !== modes.none) return false;
  if (options.userCertificate) return true;
  return options.username !== undefined && !options.allowInsecurePassword && !passwordInClear(endpoint);
}

/** Why the password is insecure in transit. Undefined if it is secure, or there is no password. */
export function passwordWarning(endpoint: EndpointOffer, options: OpcuaOptions): string | undefined {
  // The login of a direct endpoint is chosen with the session; it is clear text only with allowInsecurePassword.
  if (options.username === undefined || (!endpoint.userIdentityTokens?.length && !options.allowInsecurePassword))
    return undefined;
  if (passwordInClear(endpoint)) return "the password goes in clear text";
  return endpoint.securityMode === modes.none && options.allowInsecurePassword
    ? "the password is encrypted with a certificate that is not verified (allowInsecurePassword)"
    : undefined;
}

function tokenTypeOf({ username, userCertificate }: Pick<OpcuaOptions, "username" | "userCertificate">): 0 | 1 | 2 {
  return userCertificate ? 2 : username === undefined ? 0 : 1;
}

/** The policy that protects a token: the token's own, else the endpoint's. */
function tokenPolicyName({ securityPolicyUri }: EndpointOffer, token: TokenPolicy): string {
  return policyName(token.securityPolicyUri || securityPolicyUri);
}

function hasPolicy(endpoint: EndpointOffer, token: TokenPolicy): boolean {
  return !["None", ""].includes(tokenPolicyName(endpoint, token));
}
