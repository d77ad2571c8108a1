import { expect, test } from "vitest";
import { opcuaOptions } from "../../../../src/source/opcua/config/options.ts";
import {
  chooseEndpoint,
  type EndpointOffer,
  passwordInClear,
  securityOf,
  weaknessOf,
} from "../../../../src/source/opcua/session/endpoint.ts";

const uri = (policy: string) => `http://opcfoundation.org/UA/SecurityPolicy#${policy}`;
const anonymous = { tokenType: 0, securityPolicyUri: null };
const named = (policy?: string) => ({ tokenType: 1, securityPolicyUri: policy ? uri(policy) : null });

function endpoint(securityMode: number, policy: string, tokens = [anonymous, named()]): EndpointOffer {
  return {
    endpointUrl: "opc.tcp://plc:4840",
    securityMode,
    securityPolicyUri: uri(policy),
    transportProfileUri: null,
    userIdentityTokens: tokens,
  };
}
const none = endpoint(1, "None");
const options = (more: object = {}) => opcuaOptions.parse({ url: "opc.tcp://plc:4840", ...more });
const login = { username: "reader", password: "x" };

test("without a setting the strongest endpoint is used", () => {
  const offered = [none, endpoint(2, "Aes256_Sha256_RsaPss"), endpoint(3, "Basic256Sha256"), endpoint(3, "Basic256")];
  expect(securityOf(chooseEndpoint(offered, options()))).toBe("signAndEncrypt, Basic256Sha256");
});

test("without a setting an endpoint without security is never used", () => {
  expect(() => chooseEndpoint([none], options())).toThrow(/does not offer an endpoint with security.*mode: none/);
});

test("a deprecated policy is used only when configured, and reported as a weakness", () => {
  for (const policy of ["Basic128Rsa15", "Basic256"]) {
    const offered = [endpoint(3, policy)];
    expect(() => chooseEndpoint(offered, options())).toThrow(/does not offer/);
    expect(() => chooseEndpoint(offered, options({ security: { mode: "signAndEncrypt" } }))).toThrow(/does not offer/);
    const chosen = chooseEndpoint(offered, options({ security: { mode: "signAndEncrypt", policy } }));
    expect(weaknessOf(chosen)).toBe(`the security policy ${policy} is deprecated: it can be broken`);
  }
  expect(weaknessOf(endpoint(3, "Basic256Sha256"))).toBeUndefined();
  expect(weaknessOf(none)).toMatch(/^no security/);
});

test("a user's certificate is sent when the server requires one, with a signature", () => {
  const userCertificate = { certFile: "u.pem", keyFile: "k.pem" };
  const certified = (policy?: string) => ({ tokenType: 2, securityPolicyUri: policy ? uri(policy) : null });
  const offered = [endpoint(3, "Aes256_Sha256_RsaPss"), endpoint(3, "Basic256Sha256", [certified()])];
  expect(chooseEndpoint(offered, options({ userCertificate }))).toBe(offered[1]);
  expect(() => chooseEndpoint(offered.slice(0, 1), options({ userCertificate }))).toThrow(/no certificates of users/);
  const insecure = { userCertificate, security: { mode: "none" } };
  expect(() => chooseEndpoint([endpoint(1, "None", [certified()])], options(insecure))).toThrow(/without a proof/);
  const own = [endpoint(1, "None", [certified("Basic256Sha256")])];
  expect(chooseEndpoint(own, options(insecure))).toBe(own[0]);
});

test("mode and policy are used as configured", () => {
  const offered = [
    none,
    endpoint(3, "Basic256Sha256"),
    endpoint(3, "Aes256_Sha256_RsaPss"),
    endpoint(2, "Basic256Sha256"),
  ];
  const chosen = (security: object) => securityOf(chooseEndpoint(offered, options({ security })));
  expect(chosen({ mode: "none" })).toBe("none, None");
  expect(chosen({ mode: "sign" })).toBe("sign, Basic256Sha256");
  expect(chosen({ mode: "signAndEncrypt", policy: "Basic256Sha256" })).toBe("signAndEncrypt, Basic256Sha256");
  expect(() => chosen({ mode: "sign", policy: "Aes256_Sha256_RsaPss" })).toThrow(
    /it offers none \(clear text\); signAndEncrypt/,
  );
});

test("an endpoint that does not accept the login is skipped", () => {
  const offered = [endpoint(3, "Aes256_Sha256_RsaPss", [anonymous]), endpoint(3, "Basic256Sha256", [named()])];
  expect(securityOf(chooseEndpoint(offered, options(login)))).toBe("signAndEncrypt, Basic256Sha256");
  expect(() => chooseEndpoint(offered.slice(0, 1), options(login))).toThrow(/accepts no user names/);
  expect(() => chooseEndpoint(offered.slice(1), options())).toThrow(/requires a login; set username and password/);
});

test("a password is sent in clear text only when configured", () => {
  const security = { mode: "none" };
  const clear = [endpoint(1, "None", [named()])];
  expect(() => chooseEndpoint(clear, options({ ...login, security }))).toThrow(/clear text/);
  expect(chooseEndpoint(clear, options({ ...login, security, allowInsecurePassword: true }))).toBe(clear[0]);
});

test("a password is protected when the channel or the token is encrypted", () => {
  expect(passwordInClear(endpoint(3, "Basic256Sha256", [named("None")]))).toBe(false);
  expect(passwordInClear(endpoint(1, "None", [named("Basic256Sha256")]))).toBe(false);
  expect(passwordInClear(endpoint(2, "Basic256Sha256", [named()]))).toBe(false);
  expect(passwordInClear(endpoint(2, "Basic256Sha256", [named("None")]))).toBe(true);
});
