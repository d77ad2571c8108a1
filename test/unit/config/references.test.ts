// References to environment variables, files and credentials, and the use of their values.
import { expect, test } from "vitest";
import { complaints, head, load, withPassword } from "../../support/config.ts";

const mqtt = (options: string) =>
  `${head}sources:\n  hall:\n    type: mqtt\n    url: mqtt://broker:1883\n${options}    tags: [{ input: a, topic: a }]\n`;

async function optionsOf(options: string, variables = {}, files = {}) {
  const config = await load(mqtt(options), { ...withPassword, ...variables }, files);
  return config.sources[0]?.options ?? {};
}
const secret = async (...given: Parameters<typeof optionsOf>) => {
  const { password } = await optionsOf(...given);
  return (password as { reveal(): string }).reveal();
};

test("the value of a reference is converted like any scalar: a number is a number, a text is a text", async () => {
  const options = '    qos: "${QOS}"\n    clientId: "${ID}"\n    keepalive: "${ALIVE}s"\n';
  expect(await optionsOf(options, { QOS: "0", ID: "0815", ALIVE: "30" })).toMatchObject({
    qos: 0,
    clientId: "0815",
    keepalive: 30_000,
  });
});

test("several references and text around them make one text", async () => {
  expect(await optionsOf('    clientId: "a-${X}-${Y}"\n', { X: "1", Y: "2" })).toMatchObject({ clientId: "a-1-2" });
});

test("a default applies when the variable is unset or empty", async () => {
  expect(await optionsOf('    clientId: "${ID:-gw1}"\n')).toMatchObject({ clientId: "gw1" });
  expect(await optionsOf('    clientId: "${ID:-gw1}"\n', { ID: "" })).toMatchObject({ clientId: "gw1" });
  expect(await optionsOf('    clientId: "${ID:-gw1}"\n', { ID: "x" })).toMatchObject({ clientId: "x" });
  expect(await optionsOf('    qos: "${Q:-0}"\n')).toMatchObject({ qos: 0 });
});

test("a brace in a reference is an error, since the reference ends at the first closing one", async () => {
  for (const written of ["${ID:-${X:-y}}", "${ID:-a{b}c}", "${file:a{b}}"])
    expect(await complaints(mqtt(`    clientId: "${written}"\n`), { ...withPassword, ID: "gw1" })).toMatch(
      /7:15 {2}sources\.hall\.clientId {2}has a brace in a reference/,
    );
});

test("a file gives its text without its last newline, relative to the file that names it", async () => {
  const files = { "/run/secrets/pw": "two\nlines\n\n", "/site/pw": "crlf\r\n" };
  expect(await secret('    password: "${file:/run/secrets/pw}"\n', {}, files)).toBe("two\nlines\n");
  expect(await secret('    password: "${file:pw}"\n', {}, files)).toBe("crlf");
});

test("a credential is read from systemd's folder, and from nowhere else", async () => {
  const files = { "/run/cred/pw": "s3cret\n" };
  const variables = { CREDENTIALS_DIRECTORY: "/run/cred" };
  expect(await secret('    password: "${credential:pw}"\n', variables, files)).toBe("s3cret");
  expect(
    await complaints(mqtt('    password: "${credential:../cred/pw}"\n'), { ...withPassword, ...variables }, files),
  ).toMatch(/invalid name of a credential/);
});

test("a secret that looks like another YAML type stays a text", async () => {
  for (const text of ["null", "~", "true", "007", "1e3", "", "0x10", "${X}", "a: b", "*x"])
    expect(await secret('    password: "${PW}"\n', { PW: text })).toBe(text);
});

test("the value of a reference is not expanded again, and raw text is not expanded", async () => {
  expect(await optionsOf('    clientId: "${A}"\n    # ${NOT_SET}\n', { A: "${B}\nqos: 0" })).toMatchObject({
    clientId: "${B}\nqos: 0",
    qos: 1,
  });
});

test("a name from the object prototype is not a variable", async () => {
  expect(await complaints(mqtt('    clientId: "${constructor}"\n'), withPassword)).toMatch(
    /variable constructor is not set/,
  );
});

test("$${ is a text, not a reference", async () => {
  expect(await optionsOf('    clientId: "a$${B}"\n')).toMatchObject({ clientId: "a${B}" });
});

test("the value of a reference is never shown, even when it is invalid", async () => {
  const said = await complaints(
    `${head}sources:
  bus1:
    type: modbus
    url: "\${PASSWORD}"
    tags:
      - { input: "\${PASSWORD} x", at: "\${PASSWORD}" }
      - { input: c, at: "hr:0 \${PASSWORD}" }
      - { input: b, at: "hr:0 u16", every: "\${PASSWORD}", unit: "\${PASSWORD}", badQuality: "\${PASSWORD}" }
`,
    withPassword,
  );
  expect(said).not.toMatch(/canary/);
  expect(said.split("\n").filter((line) => line.startsWith("agent.yaml"))).toHaveLength(7);
});
