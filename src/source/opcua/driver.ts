// The driver of OPC UA: its options, its tags, and how to open a connection. The stack is loaded by the first `open`.
import { AgentError } from "../../core/errors.ts";
import type { Driver } from "../../core/source.ts";
import { opcuaOptions, opcuaTag } from "./options.ts";

export const opcuaDriver: Driver<"opcua", typeof opcuaOptions, typeof opcuaTag> = {
  type: "opcua",
  summary: "OPC UA servers: subscriptions over opc.tcp, with security",
  schema: opcuaOptions,
  tag: opcuaTag,
  captures: (tag) => (tag.browse === undefined ? [] : ["name", "path"]),
  open: () => Promise.reject(new AgentError("SOURCE_PROTOCOL", "opcua: opening is not built yet")),
  forecast: ({ tags }) => ({ readingsPerSecond: tags.reduce((sum, { every }) => sum + 1_000 / every, 0) }),
};
