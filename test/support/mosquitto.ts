// mosquitto as a peer: a third-party broker with a password file, unlimited queues and persistence.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { statSync, writeFileSync } from "node:fs";
import { connectAsync, type MqttClient } from "mqtt";
import { onFreePorts } from "../../src/demo/free-ports.ts";
import { eventually } from "./eventually.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface MosquittoOptions {
  /** Lines added to the configuration, after the listener. */
  readonly config?: readonly string[];
  /** Lines of an access control list; undefined: full access. */
  readonly acl?: readonly string[];
  /** `mqtt` by default; `mqtts` needs `cafile`, `certfile` and `keyfile` among `config`. */
  readonly protocol?: "mqtt" | "mqtts" | "ws" | "wss";
}

export interface Mosquitto extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The only user. */
  readonly username: string;
  readonly password: string;
  readonly pid: number;
  /** Its log so far. */
  readonly log: string;
  /** Opens another client for publishing, over TCP without TLS. It is closed with the broker. */
  publisher(): Promise<MqttClient>;
  /** Ends it with this signal and restarts it on the same port with its data on disk. */
  restart(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** Starts it again after `stop`. */
  start(): Promise<void>;
  /** Makes it write its data to disk. Resolves when everything that it held at the call is on disk. */
  save(): Promise<void>;
  /** Ends it with this signal. Persistent data stays. */
  stop(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
}

const username = "gw1";
const password = "gw1-password";

/** Resolves when it accepts connections. */
export async function openMosquitto(options: MosquittoOptions = {}): Promise<Mosquitto> {
  const folder = temporaryFolder();
  const { protocol = "mqtt", config = [], acl } = options;
  const passwordFile = folder.file("passwords");
  execFileSync("mosquitto_passwd", ["-b", "-c", passwordFile, username, password]);
  if (acl) writeFileSync(folder.file("acl"), `${acl.join("\n")}\n`);
  const configuration = () => [
    "per_listener_settings false",
    // Before the listener: as root, mosquitto otherwise switches to another user.
    "user root",
    `password_file ${passwordFile}`,
    ...(acl ? [`acl_file ${folder.file("acl")}`] : []),
    // Without this it silently drops messages of a client beyond 1,000 queued ones.
    "max_queued_messages 0",
    "persistence true",
    `persistence_location ${folder.path}/`,
    "autosave_interval 1",
    // mosquitto 2.0.11 ends by itself if it has only WebSocket listeners.
    ...(protocol === "mqtt" ? [] : [`listener ${plainPort} 127.0.0.1`]),
    `listener ${port} 127.0.0.1`,
    ...(protocol.startsWith("ws") ? ["protocol websockets"] : []),
    ...config,
  ];
  let log = "";
  let child: ChildProcess | undefined;
  let port = 0;
  let plainPort = 0;
  const publishers: MqttClient[] = [];

  async function run(): Promise<true> {
    const path = folder.file("mosquitto.conf");
    writeFileSync(path, `${configuration().join("\n")}\n`);
    // The kernel ends it when this process ends for any reason, because a killed test cleans up nothing.
    const started = spawn("setpriv", ["--pdeathsig", "KILL", "mosquitto", "-c", path], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    child = started;
    let own = "";
    started.stderr.setEncoding("utf8").on("data", (text: string) => {
      own += text;
      log += text;
    });
    const state = await eventually(() => {
      if (/ running/.test(own)) return "running";
      return started.exitCode === null ? undefined : "ended";
    });
    if (state === "ended") throw new Error(`mosquitto ended: ${own}`);
    return true;
  }

  async function stop(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child?.once("exit", () => resolve()));
    child.kill(signal);
    await ended;
  }

  async function start(): Promise<void> {
    // The former process may hold the port for a moment.
    await eventually(run);
  }

  await onFreePorts(2, async ([first = 0, second = 0]) => {
    port = first;
    plainPort = protocol === "mqtt" ? port : second;
    await run();
  });

  return {
    url: `${protocol}://127.0.0.1:${port}`,
    port,
    username,
    password,
    get pid() {
      return child?.pid ?? 0;
    },
    get log() {
      return log;
    },
    async publisher() {
      const client = await connectAsync(`mqtt://127.0.0.1:${plainPort}`, { username, password, reconnectPeriod: 100 });
      publishers.push(client);
      return client;
    },
    start,
    stop,
    async save() {
      const file = folder.file("mosquitto.db");
      const written = () => statSync(file, { throwIfNoEntry: false, bigint: true })?.mtimeNs;
      const before = written();
      child?.kill("SIGUSR1");
      // It writes a temporary file and renames it.
      await eventually(() => written() !== before);
    },
    async restart(signal) {
      await stop(signal);
      await start();
    },
    async [Symbol.asyncDispose]() {
      for (const client of publishers) client.end(true);
      await stop("SIGKILL");
      folder[Symbol.dispose]();
    },
  };
}
