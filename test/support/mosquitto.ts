// mosquitto as a peer: a broker that is not ours, with a password file, queues without limit and persistence.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { connectAsync, type MqttClient } from "mqtt";
import { eventually } from "./eventually.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface MosquittoOptions {
  /** Lines added to the configuration, after the listener. */
  readonly config?: readonly string[];
  /** Lines of an access control list; undefined: everybody may do everything. */
  readonly acl?: readonly string[];
  /** `mqtt` by default; `mqtts` needs `cafile`, `certfile` and `keyfile` among `config`. */
  readonly protocol?: "mqtt" | "mqtts" | "ws" | "wss";
}

export interface Mosquitto extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The one user there is. */
  readonly username: string;
  readonly password: string;
  readonly pid: number;
  /** What it wrote to its log so far. */
  readonly log: string;
  /** A client of its own for publishing, over TCP without TLS; closed with the broker. */
  publisher(): Promise<MqttClient>;
  /** Ends it as given and starts it again on the same port with what it has on disk. */
  restart(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** Starts it again after `stop`. */
  start(): Promise<void>;
  /** Has it write what it has to disk. Resolves when everything is there that it had when this was called. */
  save(): Promise<void>;
  /** Ends it; what persists, persists. */
  stop(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
}

const username = "gw1";
const password = "gw1-password";

/** Resolves when it takes connections. */
export async function openMosquitto(options: MosquittoOptions = {}): Promise<Mosquitto> {
  const folder = temporaryFolder();
  const { protocol = "mqtt", config = [], acl } = options;
  const passwordFile = folder.file("passwords");
  execFileSync("mosquitto_passwd", ["-b", "-c", passwordFile, username, password]);
  if (acl) writeFileSync(folder.file("acl"), `${acl.join("\n")}\n`);
  const configuration = () => [
    "per_listener_settings false",
    // Before the listener: mosquitto drops its rights to another user when it is started by root.
    "user root",
    `password_file ${passwordFile}`,
    ...(acl ? [`acl_file ${folder.file("acl")}`] : []),
    // Without this it drops silently what is queued beyond 1,000 messages for a client.
    "max_queued_messages 0",
    "persistence true",
    `persistence_location ${folder.path}/`,
    "autosave_interval 1",
    // mosquitto 2.0.11 ends by itself when it has listeners for WebSockets alone.
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

  async function run(): Promise<boolean> {
    const path = folder.file("mosquitto.conf");
    writeFileSync(path, `${configuration().join("\n")}\n`);
    // Ends with us, however we end: a test that is killed cleans nothing up.
    const started = spawn("setpriv", ["--pdeathsig", "KILL", "mosquitto", "-c", path], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    child = started;
    let own = "";
    started.stderr.setEncoding("utf8").on("data", (text: string) => {
      own += text;
      log += text;
    });
    return await eventually(() => {
      if (/ running/.test(own)) return "running";
      return started.exitCode === null ? undefined : "ended";
    }).then((state) => state === "running");
  }

  async function stop(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child?.once("exit", () => resolve()));
    child.kill(signal);
    await ended;
  }

  async function start(): Promise<void> {
    // The port may still be held for a moment by the one before.
    await eventually(run);
  }

  // It cannot be asked for any free port, and another may take one between our closing and its opening.
  await eventually(async () => {
    port = await freePort();
    plainPort = protocol === "mqtt" ? port : await freePort();
    return await run();
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
      // It writes another file and gives that the name, all in one turn.
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

/** A port that was free a moment ago, for a program that cannot be asked for any. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
