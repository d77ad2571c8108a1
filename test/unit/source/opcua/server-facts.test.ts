// Namespaces that a server registers while the agent is connected.
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { addNamespaces } from "../../../../src/source/opcua/session/server-facts.ts";
import type { Services } from "../../../../src/source/opcua/session/services.ts";

const add = async (known: string[], now: readonly string[] | undefined) => {
  const services = {
    async read() {
      if (!now) throw new AgentError("SOURCE_UNREACHABLE", "Read: BadUserAccessDenied");
      return [{ value: { value: now } }];
    },
  } as unknown as Services; // the only part that is used
  await addNamespaces(services, known, new AbortController().signal);
  return known;
};

test("later namespaces are added; an index with another meaning ends the connection", async () => {
  expect(await add(["", "urn:a"], ["", "urn:a", "urn:b"])).toEqual(["", "urn:a", "urn:b"]);
  expect(await add(["", "urn:a"], ["", "urn:a"])).toEqual(["", "urn:a"]);
  await expect(add(["", "urn:a"], ["", "urn:b", "urn:a"])).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
  await expect(add(["", "urn:a"], [""])).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
});

test("a server that refuses to list its namespaces again keeps the known ones", async () => {
  expect(await add(["", "urn:a"], undefined)).toEqual(["", "urn:a"]);
});
