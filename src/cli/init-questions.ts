// The questions of `tagferry init`, and what is made of the answers.
import { dirname, resolve } from "node:path";
import { agentOptions, dataDirOf } from "../config/file-schema.ts";
import { isAgentError } from "../core/errors.ts";
import type { BrowsedNode, BrowseTarget } from "../core/source.ts";
import { drivers } from "../source/registry.ts";
import { serviceOptions } from "../upload/options.ts";
import type { BrowsedDevice } from "./browsed-json.ts";
import { browsedYaml } from "./browsed-yaml.ts";
import { commandRuntime } from "./command-runtime.ts";
import type { Console } from "./console.ts";
import { count } from "./figures.ts";
import { type AgentFolder, firstContact } from "./first-contact.ts";
import type { InitAnswers, InitSource } from "./init-file.ts";
import { ask, type Judge, yesOrNo } from "./question.ts";

export interface Gathered extends Omit<InitAnswers, "file" | "exampleIntegration"> {
  /** What shall stand in which file; those that are there already are not written. */
  readonly secrets: ReadonlyMap<string, string>;
}

interface Field {
  safeParse(value: unknown): {
    readonly error?: { readonly issues: readonly { readonly message: string }[] } | undefined;
  };
}

const judgedBy =
  (field: Field): Judge =>
  (answer) =>
    field.safeParse(answer).error?.issues[0]?.message;

/** Undefined: the input ended before the last answer. `preset`: what need not be asked, since it was given. */
export async function askAll(
  given: Gathered,
  preset: { readonly service?: string; readonly integration?: string; readonly passwordFile?: string },
  target: string,
  io: Console,
): Promise<Gathered | undefined> {
  io.complain(`Enter takes what stands in [ ]. ^C ends this, and nothing is written.
`);
  const secrets = new Map<string, string>();
  const { name, ...service } = { name: agentOptions.shape.name, ...serviceOptions.shape };
  const agent = await ask("Name of this agent", given.agent, judgedBy(name), io);
  if (agent === undefined) return undefined;
  const url = preset.service ?? (await ask("Address of the service", given.service, judgedBy(service.url), io));
  if (url === undefined) return undefined;
  const integration =
    preset.integration ?? (await ask("Integration ID", given.integration, judgedBy(service.integration), io));
  if (integration === undefined) return undefined;
  const passwordFile =
    preset.passwordFile ?? (await ask("File with the password of the integration", given.passwordFile, anyText, io));
  if (passwordFile === undefined) return undefined;
  if (!(await askSecret(passwordFile, target, secrets, io))) return undefined;
  const sources: InitSource[] = [];
  const inputs = new Set<string>();
  io.complain(`
Now what is read: mqtt://host:1883, opc.tcp://host:4840, tcp://host:502 (Modbus), rtu:///dev/ttyUSB0, simulator.`);
  const place = { agent, dataDir: dataDirOf(undefined, io.environment), configFile: target };
  for (;;) {
    const answer = await ask("Address of a source; Enter: no more", "", sourceAddress, io);
    if (answer === undefined) return undefined;
    if (answer === "") return { agent, service: url, integration, passwordFile, sources, secrets };
    const source = await askSource(answer, sources, { target, secrets, inputs, place }, io);
    if (source === undefined) return undefined;
    sources.push(source);
  }
}

interface Parts {
  readonly target: string;
  readonly secrets: Map<string, string>;
  readonly inputs: Set<string>;
  readonly place: AgentFolder;
}

async function askSource(
  address: string,
  others: readonly InitSource[],
  { target, secrets, inputs, place }: Parts,
  io: Console,
): Promise<InitSource | undefined> {
  const type = typeOf(address) ?? "simulator";
  const source = { name: freeName(type, others), type };
  if (type === "simulator") return source;
  const url = configuredUrl(address);
  if (type === "modbus") {
    const unit = /[?&]unit=/.test(address) ? "" : await ask("  Unit identifier, or all", "1", unitOrAll, io);
    if (unit === undefined) return undefined;
    const place = /^\d+$/.test(unit) ? `${address}${address.includes("?") ? "&" : "?"}unit=${unit}` : address;
    return { ...source, url, tags: await lookAt(place, {}, inputs, io) };
  }
  const contact = await firstContact(address, place, io);
  if (contact === undefined) return undefined;
  const { withoutSecurity } = contact;
  const look = contact.target;
  const username = await ask("  User name; Enter: none", "", anyText, io);
  if (username === undefined) return undefined;
  if (username === "") return { ...source, url, withoutSecurity, tags: await lookAt(address, look, inputs, io) };
  const passwordFile = `${source.name}_password`;
  if (!(await askSecret(passwordFile, target, secrets, io))) return undefined;
  const password = secrets.get(passwordFile);
  const tags = await lookAt(address, { ...look, username, ...(password !== undefined && { password }) }, inputs, io);
  return { ...source, url, withoutSecurity, username, passwordFile, tags };
}

/** What it offers now, as tags; undefined: nobody looked, or nothing answered. */
async function lookAt(
  url: string,
  how: Omit<BrowseTarget, "url">,
  inputs: Set<string>,
  io: Console,
): Promise<string | undefined> {
  const answer = await ask("  Look now what it offers, and take it all? y or n", "y", yesOrNo, io);
  if (answer === undefined || !/^y/i.test(answer)) return undefined;
  const driver = drivers.find(({ type }) => type === typeOf(url));
  const nodes: BrowsedNode[] = [];
  try {
    for await (const node of driver?.browse?.({ url, ...how }, commandRuntime(), io.signal) ?? []) {
      nodes.push(node);
      io.progress(`${nodes.length} found`);
    }
  } catch (error) {
    if (!isAgentError(error)) throw error;
    io.progress(undefined);
    io.complain(`  ${error.message}\n  ${error.hint}`);
    return undefined;
  }
  io.progress(undefined);
  io.complain(`  ${count(nodes.length, "node")} found`);
  return nodes.length === 0 ? undefined : browsedYaml(nodes, inputs);
}

/** What was found at devices, as sources. */
export function foundSources(devices: readonly BrowsedDevice[]): readonly InitSource[] {
  const sources: InitSource[] = [];
  const inputs = new Set<string>();
  for (const { url, type, nodes } of devices)
    sources.push({ name: freeName(type, sources), type, url: configuredUrl(url), tags: browsedYaml(nodes, inputs) });
  return sources;
}

/** Without what only says where to look. */
function configuredUrl(url: string): string {
  const [address = "", query = ""] = url.replace("//***@", "//").split("?");
  const rest = query.split("&").filter((part) => part !== "" && !/^(unit|from|to)=/.test(part));
  return rest.length === 0 ? address : `${address}?${rest.join("&")}`;
}

function freeName(type: string, others: readonly InitSource[]): string {
  const taken = new Set(others.map(({ name }) => name));
  const wanted = type === "simulator" ? "demo" : type;
  let name = wanted;
  for (let n = 2; taken.has(name); n++) name = `${wanted}${n}`;
  return name;
}

function typeOf(address: string): string | undefined {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase();
  return drivers.find(({ schemes }) => scheme !== undefined && schemes?.includes(scheme))?.type;
}

const sourceAddress: Judge = (answer) => {
  if (answer === "" || answer === "simulator" || typeOf(answer) !== undefined) return undefined;
  const known = drivers.flatMap(({ schemes = [] }) => schemes.map((name) => `${name}://`));
  return `must be simulator, or begin with one of ${known.join(" ")}`;
};
const anyText: Judge = () => undefined;
const unitOrAll: Judge = (answer) =>
  answer === "all" || (/^\d{1,3}$/.test(answer) && Number(answer) <= 255) ? undefined : "must be 0 to 255, or all";

/** Asks for what shall stand in `file`, unless it is there. False: the input has ended. */
async function askSecret(file: string, target: string, secrets: Map<string, string>, io: Console): Promise<boolean> {
  try {
    await io.environment.readFile(resolve(dirname(target), file));
    return true;
  } catch {
    // It is not there, or not for this user to read: then writing it will not be tried over it.
  }
  const secret = await io.input.ask(`  Password, which goes into ${file} and is not shown here; Enter: later: `, {
    hidden: true,
  });
  io.signal.throwIfAborted();
  if (secret === undefined) {
    io.complain("\ntagferry: the input ended before the last answer, nothing is written");
    return false;
  }
  if (secret !== "") secrets.set(file, secret);
  return true;
}
