// The questions of `tagferry init` and the handling of the answers.

import { dataDirOf, nameOf } from "../../config/files/environment.ts";
import { agentOptions } from "../../config/format/file-schema.ts";
import { AgentError } from "../../core/errors.ts";
import { addressExamples } from "../../discover/device/protocols.ts";
import { type BrowsedDevice, browsedYaml } from "../../discover/tags/browsed.ts";
import { configuredUrl, type InitSource } from "../../discover/tags/source-yaml.ts";
import { serviceOptions } from "../../upload/client/options.ts";
import { askSource, freeName } from "./init-source.ts";
import {
  answer,
  askedSecret,
  type InitOptions,
  type InitSecret,
  type Interview,
  type Judge,
  judgedBy,
  passwordPlace,
  placedSecret,
  referenceTo,
  servicePassword,
  sourceAddressProblem,
} from "./question.ts";

export interface Gathered {
  readonly agent: string;
  readonly service: string;
  readonly integration: string;
  /** Reference to the password: `${file:service_password}`. */
  readonly password: string;
  readonly sources: readonly InitSource[];
  readonly secrets: readonly InitSecret[];
}

export const exampleIntegration = "c8ktonqsahsmemfs7lv0";
const localService = "http://127.0.0.1:8420/v1";
const usualPasswordFile = "service_password";

/** Rejects as `askSource` does. `target`: the configuration that will be written. */
export async function askAll(options: InitOptions, interview: Interview): Promise<Gathered> {
  const { io, unattended, target } = interview;
  if (!unattended) io.complain("Enter takes what stands in [ ]. ^C ends this, and nothing is written.\n");
  const { name, ...service } = { name: agentOptions.shape.name, ...serviceOptions.shape };
  const asked = (text: string, usual: string, key: "name" | "service" | "integration", judge: Judge) =>
    answer({ text, usual, given: options[key], judge, flag: `--${key}` }, interview);
  const agent = await asked("Name of this agent", nameOf(io.environment.hostname), "name", judgedBy(name));
  const url = await asked("Address of the service", localService, "service", judgedBy(service.url));
  const integration = await asked("Integration ID", exampleIntegration, "integration", judgedBy(service.integration));
  const password = await passwordOfService(options, interview);
  const secrets = [password];
  const sources: InitSource[] = [];
  const dataDir = dataDirOf(undefined, target, io.environment);
  const about = { ...interview, agent, dataDir, sources, inputs: new Set<string>(), offline: options.offline === true };
  for await (const given of sourcesOf(options, interview)) {
    const { source, secret } = await askSource(given, about);
    sources.push(source);
    if (secret) secrets.push(secret);
  }
  return { agent, service: url, integration, password: password.reference, sources, secrets };
}

/** The given sources. If there are none, asks for one after the other. */
async function* sourcesOf(
  { sources }: InitOptions,
  interview: Interview,
): AsyncGenerator<InitOptions["sources"][number]> {
  const address = { text: "Address of a source", flag: "--source", judge: sourceAddressProblem };
  for (const source of sources) {
    await answer({ ...address, given: source.url }, interview);
    yield source;
  }
  if (sources.length > 0 || interview.unattended) return;
  interview.io.complain(`
Now what is read: ${[...addressExamples(), "simulator"].join(", ")}.`);
  for (;;) {
    const text = "Address of a source; Enter: no more";
    const judge = (url: string) => (url === "" ? undefined : sourceAddressProblem(url));
    const url = await answer({ text, judge, flag: "--source" }, interview);
    if (url === "") return;
    yield { url };
  }
}

async function passwordOfService(options: InitOptions, interview: Interview): Promise<InitSecret> {
  const place = passwordPlace(options);
  if (place !== undefined && (interview.unattended || "env" in place))
    return await placedSecret(place, servicePassword, interview);
  const { file, env } = servicePassword;
  if (!interview.unattended) {
    const question = { text: "File with the password of the integration", usual: usualPasswordFile, flag: file };
    return await askedSecret(await answer({ ...question, given: place?.file }, interview), interview);
  }
  try {
    return await placedSecret({ file: usualPasswordFile }, servicePassword, interview);
  } catch (error) {
    const message = `the password of the integration is missing: ${file} or ${env} says where it is`;
    throw new AgentError("CONFIG_INVALID", message, { cause: error });
  }
}

/** Turns the results of `browse` into a configuration without questions. Rejects as `answer` does. */
export async function foundDevices(
  devices: readonly BrowsedDevice[],
  options: InitOptions,
  interview: Interview,
): Promise<Gathered> {
  const { name, service, integration } = options;
  const password = passwordPlace(options) ?? { file: usualPasswordFile };
  const secret: InitSecret =
    "env" in password
      ? await placedSecret(password, servicePassword, interview)
      : { reference: referenceTo(password.file), file: password.file };
  return {
    agent: name ?? nameOf(interview.io.environment.hostname),
    service: service ?? localService,
    integration: integration ?? exampleIntegration,
    password: secret.reference,
    sources: foundSources(devices),
    secrets: [secret],
  };
}

function foundSources(devices: readonly BrowsedDevice[]): readonly InitSource[] {
  const sources: InitSource[] = [];
  const inputs = new Set<string>();
  for (const { url, type, securityMode, nodes } of devices) {
    const name = freeName(type, sources);
    sources.push({ name, type, url: configuredUrl(url), securityMode, tags: browsedYaml(nodes, inputs) });
  }
  return sources;
}
