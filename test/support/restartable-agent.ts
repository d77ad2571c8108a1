// An agent that a drill kills, restarts as a service manager would, suspends, reloads and measures.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Gap, gapListSchema } from "../../src/agent/gaps/gap.ts";
import type { Status } from "../../src/agent/status/status.ts";
import { type AgentProcess, type AgentProcessOptions, startAgent } from "./agent-process.ts";
import { eventually } from "./eventually.ts";
import { integration, password } from "./service.ts";
import { resume, suspend } from "./suspend.ts";

export interface RestartableAgentOptions extends Pick<AgentProcessOptions, "folder" | "entry" | "nodeOptions"> {
  /** YAML; `more` alternates with each reload. */
  readonly configuration: (more: boolean) => string;
}

/** Resources that the process holds. */
export interface Footprint {
  readonly rssMiB: number;
  readonly descriptors: number;
}

/** The maximum time of any step on a busy machine. */
export const patienceMs = 300_000;

export class RestartableAgent implements AsyncDisposable {
  /** The exit statuses after SIGTERM. */
  readonly exits: (number | null)[] = [];
  reloads = 0;
  /** Starts that failed and were repeated. */
  readonly failedStarts: string[] = [];
  readonly #options: RestartableAgentOptions;
  readonly #logs: AgentProcess["log"][] = [];
  #process: AgentProcess | undefined;
  #more = false;

  constructor(options: RestartableAgentOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#process = await eventually(async () => {
      try {
        return await startAgent({ ...this.#options, configuration: this.#options.configuration(this.#more) });
      } catch (error) {
        this.failedStarts.push(String(error));
        throw error;
      }
    }, patienceMs);
    this.#logs.push(this.#process.log);
  }

  async kill(): Promise<void> {
    await this.#running.kill();
  }

  async stop(): Promise<void> {
    this.exits.push(await this.#running.stop());
  }

  /** Resolves when it has stopped. Until `resume` its connections stay open. */
  async suspend(): Promise<void> {
    await suspend(this.#running.pid);
  }

  resume(): void {
    resume(this.#running.pid);
  }

  /** Sends SIGHUP with another list of tags. Resolves when the agent reports that it is in effect. */
  async reload(): Promise<void> {
    this.#more = !this.#more;
    const { log, pid } = this.#running;
    const count = () => log.filter(({ msg }) => msg === "configuration reloaded").length;
    const before = count();
    writeFileSync(join(this.#options.folder, "tagferry.yaml"), this.#options.configuration(this.#more));
    process.kill(pid, "SIGHUP");
    await eventually(() => count() > before, patienceMs);
    this.reloads++;
  }

  status(): Promise<Status> {
    return this.#running.status();
  }

  async gaps(): Promise<readonly Gap[]> {
    const answer = await fetch(new URL("/api/gaps?since=30d&most=5000", this.#running.page));
    return gapListSchema.parse(await answer.json()).gaps;
  }

  footprint(): Footprint {
    const { pid } = this.#running;
    const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
    return { rssMiB: rss / 1_024, descriptors: readdirSync(`/proc/${pid}/fd`).length };
  }

  /** The log of all its processes. */
  get log(): AgentProcess["log"] {
    return this.#logs.flat();
  }

  /** Log lines of level 50 and above. */
  get errors(): AgentProcess["log"] {
    return this.log.filter(({ level }) => Number(level) >= 50 || level === undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process?.[Symbol.asyncDispose]();
  }

  get #running(): AgentProcess {
    if (!this.#process) throw new Error("the agent was not started");
    return this.#process;
  }
}

export function soakConfiguration(dataDir: string, serviceUrl: string, sources: string): string {
  return `version: 1
agent: { name: soak, dataDir: ${JSON.stringify(dataDir)}, ownSignals: off }
service: { url: "${serviceUrl}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
buffer: { maxSize: 16MiB, reserveFreeDisk: "0", whenFull: block }
http: { listen: "127.0.0.1:0" }
sources:${sources}`;
}
