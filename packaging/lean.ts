// What is left out of the bundles, and how: code that Node never runs or has itself, and code that hardly anybody needs. An
// agent pays for what it carries with its start and its memory.
import { readFile } from "node:fs/promises";
import { builtinModules } from "node:module";
import type { Plugin } from "esbuild";
import { withSlashes } from "../src/lib/files/paths.ts";

/**
 * Of zod what is used. `import { z }` names all of it, the messages of forty languages among it; the same names taken from
 * the module itself leave that behind.
 */
export const zodInParts: Plugin = {
  name: "zod in parts",
  setup(build) {
    build.onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replace('import { z } from "zod";', 'import * as z from "zod";'),
      loader: "ts",
    }));
  },
};

/**
 * Node's own modules as it keeps them. An `import` or a `require` of one evaluates all its exports, those as well that Node
 * itself loads when they are first used: with `node:http` comes a WebSocket, and with that the built-in fetch.
 */
export const builtinsAsTheyAre: Plugin = {
  name: "builtins as they are",
  setup(build) {
    const known = new Set(builtinModules.map((name) => name.replace(/^node:/, "")));
    build.onResolve({ filter: /^(node:)?[a-z_/0-9]+$/ }, ({ path, kind }) => {
      const name = path.replace(/^node:/, "");
      if (!known.has(name)) return undefined;
      return { path: name, namespace: kind === "require-call" ? "required builtin" : "imported builtin" };
    });
    build.onLoad({ filter: /./, namespace: "required builtin" }, ({ path }) => ({
      contents: seldomUsed.includes(path) ? late(got(path)) : `module.exports = ${got(path)};`,
    }));
    build.onLoad({ filter: /./, namespace: "imported builtin" }, ({ path }) => {
      const names = Object.getOwnPropertyNames(process.getBuiltinModule(`node:${path}`) ?? {});
      const given = names.filter((name) => /^[A-Za-z_]\w*$/.test(name) && name !== "default");
      // Marked so that those nobody asks for are left out.
      const exported = given.map((name) => `export const ${name} = /* @__PURE__ */ (() => own.${name})();`);
      return { contents: [`const own = ${got(path)};`, "export default own;", ...exported].join("\n") };
    });
  },
};

function got(name: string): string {
  return `process.getBuiltinModule(${JSON.stringify(`node:${name}`)})`;
}

/** Libraries have them at hand for what they hardly ever do. */
const seldomUsed = ["assert", "child_process"];

/** CommonJS that is not loaded before something of it is used. */
function late(load: string): string {
  return `const real = () => ${load};
module.exports = new Proxy(function () {}, {
  apply: (_, own, given) => real()(...given),
  construct: (_, given) => new (real())(...given),
  get: (_, name) => (name === "__esModule" ? undefined : real()[name]),
});`;
}

/** Of modbus-serial the client: `client.ts` is its port, and there is no server. Some of the others load `serialport`. */
export const modbusClientAlone: Plugin = {
  name: "the client of modbus-serial alone",
  setup(build) {
    build.onResolve({ filter: /^\.\.?\/(ports|servers)\// }, ({ path, importer }) =>
      withSlashes(importer).includes("/node_modules/modbus-serial/") ? { path, namespace: "nothing" } : undefined,
    );
    build.onLoad({ filter: /./, namespace: "nothing" }, nothing);
  },
};

/** Of undici HTTP/1.1: its other half would load `node:http2`, 4 MB, and is not switched on. */
export const undiciWithoutHttp2: Plugin = {
  name: "undici without HTTP/2",
  setup(build) {
    build.onResolve({ filter: /^\.\/client-h2\.js$/ }, ({ path }) => ({ path, namespace: "no HTTP/2" }));
    build.onLoad({ filter: /./, namespace: "no HTTP/2" }, nothing);
  },
};

const nothing = () => ({ contents: "module.exports = {};" });

/** Packages of mqtt.js for browsers, whose place Node takes: nothing of them is called here. */
const forBrowsers = ["worker-timers"];
/** Packages for brokers behind WebSockets and SOCKS: evaluated with the first such connection. */
const seldom = ["ws", "socks"];

/** Of mqtt.js what a connection in Node needs. */
export const mqttForNode: Plugin = {
  name: "mqtt for Node",
  setup(build) {
    // Node's streams under another name, of which it takes the originals itself with READABLE_STREAM=disable.
    build.onResolve({ filter: /^readable-stream$/ }, ({ kind, resolveDir }) =>
      build.resolve("node:stream", { kind, resolveDir }),
    );
    build.onResolve({ filter: new RegExp(`^(${forBrowsers.join("|")})$`) }, ({ path }) => ({
      path,
      namespace: "nothing",
    }));
    build.onLoad({ filter: /./, namespace: "nothing" }, nothing);
    // Its own log of every packet: `client.ts` gives it another one, which is silent.
    build.onResolve({ filter: /^debug$/ }, ({ path, importer }) =>
      /\/node_modules\/(mqtt(-packet)?|modbus-serial)\//.test(withSlashes(importer))
        ? { path, namespace: "silence" }
        : undefined,
    );
    build.onLoad({ filter: /./, namespace: "silence" }, () => ({ contents: "module.exports = () => () => {};" }));
    build.onResolve({ filter: new RegExp(`^(${seldom.join("|")})$`) }, ({ path, importer, resolveDir, namespace }) =>
      namespace === "later" || !withSlashes(importer).includes("/node_modules/mqtt/")
        ? undefined
        : { path, namespace: "later", pluginData: resolveDir },
    );
    build.onLoad({ filter: /./, namespace: "later" }, ({ path, pluginData }) => ({
      contents: late(`require(${JSON.stringify(path)})`),
      resolveDir: String(pluginData),
    }));
  },
};

/** A regular expression of the NATS client has a character that the bundler does not escape. */
export const natsInAscii: Plugin = {
  name: "NATS in ASCII",
  setup(build) {
    build.onLoad({ filter: /@nats-io[\\/]jetstream[\\/]lib[\\/]jsclient\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replaceAll("\u00b5", "\\u00b5"),
    }));
  },
};
