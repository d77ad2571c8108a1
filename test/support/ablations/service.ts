// The safeguards of the local service: its files are for its user alone, guesses are slowed down, right secrets are not.
import type { Ablation } from "./ablation.ts";

const files = "integration/service-files.test.ts";
const brake = "integration/service-brake.test.ts";
const readers = "integration/service-readers.test.ts";
const guesses = "unit/service/guess-brake.test.ts";

export const serviceAblations: readonly Ablation[] = [
  {
    safeguard: "making the databases for the user of the service alone",
    file: "service/store/store.ts",
    code: "    keepPrivate(data);\n",
    without: "",
    test: files,
  },
  {
    safeguard: "closing files of an earlier start to others",
    file: "service/store/store.ts",
    code: "if ((statSync(path).mode & 0o777) !== 0o600) chmodSync(path, 0o600);",
    without: "statSync(path);",
    test: files,
  },
  {
    safeguard: "making the databases before SQLite does",
    file: "service/store/store.ts",
    code: "  for (const name of databases) create(join(folder, name));\n",
    without: "",
    test: files,
  },
  {
    safeguard: "closing the log of a killed service to others",
    file: "service/store/store.ts",
    code: '"service.sqlite-wal", ',
    without: "",
    test: files,
  },
  {
    safeguard: "the brake on wrong passwords",
    file: "service/http/rpc-endpoint.ts",
    code: "      if (basicCredentials(request.headers.authorization)) await refusals.turn(request, response);\n",
    without: "",
    test: brake,
    name: "of many wrong passwords",
  },
  {
    safeguard: "letting the right password in before the brake",
    file: "service/http/rpc-endpoint.ts",
    code: "    if (!caller) {\n",
    without: "    await refusals.turn(request, response);\n    if (!caller) {\n",
    test: brake,
    name: "the right password is let in at once",
    message: "socket hang up",
  },
  {
    safeguard: "challenging requests without credentials at once",
    file: "service/http/rpc-endpoint.ts",
    code: "if (basicCredentials(request.headers.authorization)) await",
    without: "await",
    test: brake,
    name: "without credentials",
    message: "Test timed out",
  },
  {
    safeguard: "the brake on wrong client secrets",
    file: "service/http/token-endpoint.ts",
    code: "    await refusals.turn(request, response);\n",
    without: "",
    test: brake,
    name: "wrong secrets of a client",
  },
  {
    safeguard: "counting token requests after the secret was right",
    file: "service/http/token-endpoint.ts",
    code: '  const same = sameText(integration?.clientSecret?.reveal() ?? "", given?.clientSecret ?? "");\n',
    without:
      '  admission.admitToken(integration?.id ?? "");\n  const same = sameText(integration?.clientSecret?.reveal() ?? "", given?.clientSecret ?? "");\n',
    test: brake,
    name: "wrong secrets of a client",
    message: "fetch failed",
  },
  {
    safeguard: "the bound of the refusals that wait",
    file: "service/http/guess-brake.ts",
    code: "    if (wait > longestMs) return undefined;\n",
    without: "",
    test: guesses,
  },
  {
    safeguard: "the brake on each address",
    file: "service/http/guess-brake.ts",
    code: "waitOf(ofOneAddress, next, now), ",
    without: "",
    test: guesses,
  },
  {
    safeguard: "the brake on all addresses",
    file: "service/http/guess-brake.ts",
    code: ", waitOf(ofAll, nextOfAll, now)",
    without: "",
    test: guesses,
  },
  {
    safeguard: "forgetting addresses whose turns are over",
    file: "service/http/guess-brake.ts",
    code: "    this.#forget(now);\n",
    without: "",
    test: guesses,
  },
  {
    safeguard: "taking the addresses of an IPv6 network for one",
    file: "service/http/guess-brake.ts",
    code: ".slice(0, 4).join",
    without: ".join",
    test: guesses,
  },
  {
    safeguard: "answering queries on threads of their own",
    file: "service/worker/store-threads.ts",
    code: "if (method && onlyReads(method)) return",
    without: "if (this.#readers.length < 0) return",
    test: readers,
    name: "is answered before that insert",
  },
  {
    safeguard: "telling the threads that read what was written, before the answer",
    file: "service/worker/store-threads.ts",
    code: "reader.refresh(answer.changes)",
    without: "void reader",
    test: readers,
    name: "of every write that was answered before it",
  },
  {
    safeguard: "answering a query from one state of the file",
    file: "service/worker/store-worker.ts",
    code: "? store.snapshot(() => dispatch(message.input, store))",
    without: "? dispatch(message.input, store)",
    test: readers,
    name: "sees all of each or nothing",
  },
  {
    safeguard: "answering a repeated write with the outcome that came too late",
    file: "service/http/rpc-endpoint.ts",
    code: "(key === undefined ? undefined : this.#late.take(key))",
    without: "undefined",
    test: "integration/service-throttle.test.ts",
    name: "is not run again when it is repeated",
  },
];
