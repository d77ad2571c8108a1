// The requests of the page that finds and adds tags, over HTTP, with a configuration in a folder of its own.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { processEnvironment } from "../../src/config/files/environment.ts";
import { loadConfig } from "../../src/config/load.ts";
import { Secret } from "../../src/core/secret.ts";
import { type Discover, type DiscoverParts, openDiscover } from "../../src/discover/discover.ts";
import type { Control } from "../../src/web/control.ts";
import { openWeb } from "../../src/web/server.ts";
import { head } from "./config.ts";
import { type TestRuntime, testRuntime } from "./runtime.ts";
import { statusWith } from "./status.ts";
import { type TemporaryFolder, temporaryFolder } from "./temporary-folder.ts";

export const discoverToken = "canary-0123456789abcdef";

export interface DiscoverOptions {
  /** Lines after the head; default: an include of `conf.d`. */
  readonly configuration?: string;
  readonly runtime?: TestRuntime;
  readonly reload?: DiscoverParts["reload"];
  /** Default: no source runs. */
  readonly running?: DiscoverParts["running"];
}

export interface Answer {
  readonly status: number;
  /** Parsed JSON. */
  readonly body: ReturnType<typeof JSON.parse>;
}

export interface DiscoverWorld extends AsyncDisposable {
  readonly folder: TemporaryFolder;
  /** The configuration. */
  readonly file: string;
  readonly url: string;
  readonly discover: Discover;
  readonly control: Control;
  readonly runtime: TestRuntime;
  /** POST with the token; `headers` replace or add some. */
  readonly ask: (action: string, body?: object, headers?: Readonly<Record<string, string>>) => Promise<Answer>;
}

export async function discoverWorld(options: DiscoverOptions = {}): Promise<DiscoverWorld> {
  await using opening = new AsyncDisposableStack();
  const folder = opening.use(temporaryFolder());
  const file = folder.file("tagferry.yaml");
  mkdirSync(folder.file("conf.d"));
  const { configuration = "include: conf.d/*.yaml\n", runtime = testRuntime() } = options;
  writeFileSync(file, `${head}agent: { name: gw, dataDir: ${join(folder.path, "data")} }\n${configuration}`);
  const variables = { PASSWORD: "canary-service" };
  const environment = { ...processEnvironment(), variables };
  const reload =
    options.reload ??
    (async () => {
      try {
        await loadConfig(file, environment);
        return { ok: true };
      } catch (error) {
        return { ok: false, reason: String(error) };
      }
    });
  const { checksum } = await loadConfig(file, environment);
  const { running = () => [] } = options;
  const discover = opening.use(openDiscover({ file, environment, reload, checksum: () => checksum, running }, runtime));
  const control: Control = {
    tokens: [new Secret(discoverToken)],
    tokenFile: folder.file("control.token"),
    reload,
    retryRejects: async () => ({ ok: false }),
    log: () => [],
    security: () => ({}),
    discover,
  };
  const web = opening.use(
    await openWeb(
      {
        listen: { host: "127.0.0.1", port: 0 },
        snapshot: () => statusWith(),
        metrics: async () => "",
        health: () => ({ ok: true }),
        ready: () => ({ ok: true }),
        control,
      },
      runtime,
      new AbortController().signal,
    ),
  );
  const owned = opening.move();
  return {
    folder,
    file,
    url: web.url,
    discover,
    control,
    runtime,
    ask: async (action, body = {}, headers = {}) => {
      const own = { "content-type": "application/json", authorization: `Bearer ${discoverToken}`, ...headers };
      const response = await fetch(`${web.url}/api/discover/${action}`, {
        method: "POST",
        headers: own,
        body: JSON.stringify(body),
      });
      return { status: response.status, body: await response.json() };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
