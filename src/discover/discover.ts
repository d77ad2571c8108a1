// Answers the requests of the page: look at a device, choose tags, see the difference, write it, take it up.
import { resolve } from "node:path";
import type { z } from "zod";
import { configIssues } from "../config/load.ts";
import { formatIssue } from "../config/nodes/issue.ts";
import type { BrowsedNode, ExploredNode, KnownCertificate } from "../core/commissioning.ts";
import { codeOf, errorCodes, isAgentError, reasonOf, remedyOf } from "../core/errors.ts";
import type { Runtime } from "../core/runtime.ts";
import type { Source } from "../core/source.ts";
import { deadline, orAbort } from "../lib/flow/abort.ts";
import { withoutSecrets } from "../lib/text/without-secrets.ts";
import { drivers } from "../source/registry.ts";
import { loadWith, newFile, obstacleTo } from "./change/config-files.ts";
import { type ConfigPlace, type Proposal, propose, type ReloadResult, write } from "./change/proposal.ts";
import { type Look, Looks } from "./device/looks.ts";
import { addressExamples, certificateStores, knownCertificates } from "./device/protocols.ts";
import * as requests from "./device/requests.ts";
import { addressTarget, sourceTarget, undecided, withAccess } from "./device/target.ts";
import { templateNames } from "./tags/input-names.ts";

export interface DiscoverParts extends ConfigPlace {
  /** Takes up the configuration. Never rejects. */
  readonly reload: () => Promise<ReloadResult>;
  /** Checksum of the configuration that the agent runs with. */
  readonly checksum: () => string | undefined;
  /** The connections of the running sources of this type. */
  readonly running: (type: string) => readonly Source[];
}

/** An HTTP status and the JSON of the answer. */
export interface DiscoverAnswer {
  readonly status: 200 | 400 | 404 | 409 | 410 | 422 | 503;
  readonly body: object;
}

type Action = (body: unknown, signal: AbortSignal) => Promise<DiscoverAnswer>;

/** Requests that change something. One that has begun is answered with its outcome, however long it takes. */
const changes: readonly string[] = ["write", "trust"];
/** Time limit of one request to a device, and of the wait for a turn, in milliseconds. */
const withinMs = 20_000;
/** Requests that are worked on at the same time, by all pages. */
const mostRequests = 8;
const longestValue = 200;

export type Discover = ReturnType<typeof openDiscover>;

/** Disposing it closes every connection. */
export function openDiscover(parts: DiscoverParts, runtime: Runtime) {
  const { file, environment } = parts;
  const looks = new Looks(runtime);
  let runningRequests = 0;
  /** Writes take turns. Resolves when the last one has ended. */
  let writing: Promise<void> = Promise.resolve();
  const actions: Readonly<Record<string, Action>> = {
    places,
    open: on(requests.openRequest, openLook),
    close: on(requests.closeRequest, async ({ look }) => {
      await looks.close(look);
      return done({});
    }),
    list: onLook(requests.listRequest, async (look, { look: _look, search, ...query }, signal) => {
      const words = search.toLowerCase().split(/\s+/).filter(Boolean);
      const { nodes, ...rest } = await look.explorer.list({ ...query, search: words }, signal);
      return done({ ...rest, nodes: nodes.map(shownNode) });
    }),
    values: onLook(requests.valuesRequest, async (look, { keys }, signal) => {
      const values = await look.explorer.values(keys, signal);
      return done({ values: Object.fromEntries([...values].map(([key, value]) => [key, shownValue(value)])) });
    }),
    propose: onLook(requests.proposeRequest, async (look, wish) => done(shown(await propose(look, wish, parts)))),
    write: on(requests.writeRequest, (wish, signal) => inTurn(() => writeTags(wish), signal)),
    trust: on(requests.trustRequest, trust),
  };

  function on<T>(schema: z.ZodType<T>, act: (wish: T, signal: AbortSignal) => Promise<DiscoverAnswer>): Action {
    return async (body, signal) => {
      const wish = schema.safeParse(body);
      if (wish.success) return await act(wish.data, signal);
      const [issue] = wish.error.issues;
      return failed(400, `${issue?.path.join(".") ?? ""} ${issue?.message ?? "is invalid"}`.trim());
    };
  }

  function onLook<T extends { readonly look: string }>(
    schema: z.ZodType<T>,
    act: (look: Look, wish: T, signal: AbortSignal) => Promise<DiscoverAnswer>,
  ): Action {
    return on(schema, async (wish, signal) => {
      const look = looks.find(wish.look);
      return look ? await act(look, wish, signal) : gone;
    });
  }

  /** What the page shows first: sources, protocols, and whether anything can be written. */
  async function places(): Promise<DiscoverAnswer> {
    const example = newFile(file, environment, "tagferry-example");
    const main = resolve(environment.cwd, file);
    const { config } = await loadWith(file, environment);
    const overlay = new Map([[example, "sources: {}\n"]]);
    const included = (await loadWith(file, environment, overlay).catch(() => undefined))?.files.has(example) ?? false;
    return done({
      sources: config.sources
        .filter(({ driver }) => driver.schemes !== undefined)
        .map(({ name, driver }) => ({ name, type: driver.type, protocol: driver.example.protocol })),
      addresses: addressExamples(),
      protocols: drivers
        .filter(({ schemes }) => schemes !== undefined)
        .map(({ schemes, type, example: { protocol } }) => ({ type, protocol, schemes })),
      templateNames,
      obstacle: await obstacleTo(example, main, included),
      waiting: await waiting(),
    });
  }

  async function openLook(wish: requests.OpenRequest, signal: AbortSignal): Promise<DiscoverAnswer> {
    const { source, url } = wish;
    if ((source === undefined) === (url === undefined)) return failed(400, "needs either source or url");
    const { config } = await loadWith(file, environment);
    const { dataDir, name: agent } = config.agent;
    let found = url === undefined ? undefined : addressTarget(url, "the fields below");
    if (found && url !== undefined) {
      const { driver } = found;
      const decision = await undecided(
        { ...wish, url },
        {
          offered: async () => await driver.endpoints?.({ url }, runtime, signal),
          known: () => knownCertificates(dataDir),
        },
      );
      if (decision) return { status: 200, body: { ok: false, decision } };
      const own = { sharedDir: dataDir, agent, configFile: resolve(environment.cwd, file) };
      found = { driver, target: withAccess(driver, { ...found.target, ...own }, wish) };
    }
    const place = found ?? sourceTarget(config, { file, source: source ?? "" });
    const running = () => parts.running(place.driver.type);
    try {
      const look = await looks.open({ ...place, target: { ...place.target, running }, source }, signal);
      const { id, driver, target } = look;
      return done({
        look: id,
        source,
        type: driver.type,
        protocol: driver.example.protocol,
        url: withoutSecrets(target.url),
        tree: look.explorer.tree,
      });
    } catch (error) {
      if (!isAgentError(error, "SOURCE_REFUSED")) throw error;
      // A refused certificate waits here until a person has compared it.
      return failed(422, withoutSecrets(error.message), error.hint, { waiting: await waiting() });
    }
  }

  async function writeTags(wish: requests.WriteRequest): Promise<DiscoverAnswer> {
    const look = looks.find(wish.look);
    if (!look) return gone;
    const proposal = await propose(look, wish, parts);
    const stale = { stale: true, proposal: shown(proposal) };
    const changed = "the file has changed since the difference was shown; nothing was written";
    if (proposal.base !== wish.base || proposal.result !== wish.result) return failed(409, changed, undefined, stale);
    const { file: target, source, inputs, obstacle, errors } = proposal;
    if (obstacle) return failed(422, obstacle.reason, obstacle.steps.join("\n"));
    if (errors.length > 0)
      return failed(422, "the configuration would be invalid; nothing was written", errors.join("\n"));
    const written = await write(proposal, parts.reload);
    if (written.outcome === "stale") return failed(409, changed, undefined, stale);
    const { outcome, reload } = written;
    runtime.log.info(
      { part: "web", file: target, source, tags: inputs.length, outcome },
      "tags were written by the page",
    );
    if (outcome === "refused")
      return failed(422, `the agent refused it, and ${target} is as it was: ${reload.reason ?? ""}`, undefined, {
        reload,
      });
    return done({ file: target, source, inputs, reload });
  }

  async function trust({ sha256, decision }: z.output<typeof requests.trustRequest>): Promise<DiscoverAnswer> {
    const { config } = await loadWith(file, environment);
    const act = decision === "accept" ? "trust" : "reject";
    const found = await Promise.all(certificateStores().map((store) => store[act](config.agent.dataDir, sha256)));
    if (!found.includes(true)) return failed(422, "there is no such certificate", "connect once more");
    runtime.log.info({ part: "web", sha256, decision }, "a certificate was decided on by the page");
    return done({ waiting: await waiting() });
  }

  async function waiting(): Promise<readonly KnownCertificate[]> {
    const { config } = await loadWith(file, environment);
    const known = await knownCertificates(config.agent.dataDir);
    return known.filter(({ state }) => state === "rejected").slice(0, 50);
  }

  function shown({ before, after: _after, secret, checksum, ...rest }: Proposal) {
    return {
      ...rest,
      isNew: before === undefined,
      secretFile: secret?.file,
      /** The configuration was edited since it was loaded: a reload applies these changes, too. */
      otherChanges: checksum !== parts.checksum(),
    };
  }

  /** `signal` ends the wait for the turn. */
  async function inTurn(work: () => Promise<DiscoverAnswer>, signal: AbortSignal): Promise<DiscoverAnswer> {
    const before = writing;
    const turn = Promise.withResolvers<void>();
    writing = before.then(() => turn.promise);
    try {
      const hasTurn = await orAbort(before, signal).then(
        () => true,
        () => false,
      );
      if (hasTurn) return await work();
      return failed(503, "another change is still being taken up; nothing was written", "try again in a moment");
    } finally {
      turn.resolve();
    }
  }

  /** `signal`: the page is gone. Rejects only for defects. */
  async function answer(action: string, body: unknown, signal: AbortSignal): Promise<DiscoverAnswer> {
    const act = Object.hasOwn(actions, action) ? actions[action] : undefined;
    if (!act) return failed(404, "there is no such request");
    if (runningRequests >= mostRequests) return failed(503, "too many requests at once", "try again in a moment");
    runningRequests++;
    const isChange = changes.includes(action);
    const late = new Error("the time limit of the request is over");
    using bound = deadline(withinMs, signal, () => late, runtime.clock);
    try {
      const answer = act(body, bound.signal);
      return await (isChange ? answer : orAbort(answer, bound.signal));
    } catch (error) {
      if (!isChange && bound.signal.reason === late)
        return failed(422, `no answer within ${withinMs / 1_000} s`, "the device may be overloaded");
      if (!isChange && signal.aborted) return failed(410, "the page has left");
      if (!isAgentError(error)) {
        if (typeof codeOf(error) !== "string") throw error;
        return failed(422, withoutSecrets(reasonOf(error)), remedyOf(error));
      }
      const issues = configIssues(error).map(formatIssue);
      // Without issues, what was typed is wrong, not the configuration; the message has the remedy.
      const remedy = issues.length === 0 && error.hint === errorCodes.CONFIG_INVALID.hint ? undefined : error.hint;
      return failed(422, withoutSecrets([error.message, ...issues].join("\n")), remedy);
    } finally {
      runningRequests--;
    }
  }

  return { answer, [Symbol.asyncDispose]: () => looks[Symbol.asyncDispose]() };
}

const gone = failed(410, "this connection was closed", "connect again", { gone: true });

function done(body: object): DiscoverAnswer {
  return { status: 200, body: { ok: true, ...body } };
}

function failed(status: DiscoverAnswer["status"], reason: string, remedy?: string, more: object = {}): DiscoverAnswer {
  return { status, body: { ok: false, reason, remedy, ...more } };
}

function shownNode({ value, ...node }: ExploredNode): object {
  return value === undefined ? node : { ...node, value: shownValue(value) };
}

/** As JSON can carry it. */
function shownValue(value: NonNullable<BrowsedNode["value"]>): number | boolean | string {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  return typeof value === "string" ? value.slice(0, longestValue) : value;
}
