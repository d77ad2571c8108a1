// What esbuild is told to leave out of the bundle. An agent pays for what it carries with its start and its memory.
//
// Each of the first three is here because the bundle without it was measured to be worse by 5 % of the start or 5 MB of memory. Medians of
// nine starts, all builds in turn, MQTT and Modbus, 2026-11-23: processor time until ready, resident memory 5 s later, code.
//
//   all of these          410 ms    95 MB   6.1 MB
//   builtinsAsTheyAre     480 ms   100 MB   6.1 MB   without it
//   modbusClientAlone     450 ms   102 MB   6.2 MB   without it
//   zodInParts            440 ms    97 MB   7.5 MB   without it
//   none of these         560 ms   110 MB   7.9 MB
import { readFile } from "node:fs/promises";
import { builtinModules } from "node:module";
import type { Plugin } from "esbuild";

/**
 * Of zod what is used. `import { z }` names all of it, the messages of forty languages among it; the same names taken from
 * the module itself leave that behind.
 */
export const zodInParts: Plugin = {
  name: "zod in parts",
  setup(build) {
    build.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => ({
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
      importer.includes("/node_modules/modbus-serial/") ? { path, namespace: "nothing" } : undefined,
    );
    build.onLoad({ filter: /./, namespace: "nothing" }, () => ({ contents: "module.exports = {};" }));
  },
};

/** Without what mqtt.js and modbus-serial print for anyone who sets DEBUG: whole packets, passwords included. For safety alone. */
export const silentLibraries: Plugin = {
  name: "silent libraries",
  setup(build) {
    build.onResolve({ filter: /^debug$/ }, ({ path, importer }) =>
      /\/node_modules\/(mqtt(-packet)?|modbus-serial)\//.test(importer) ? { path, namespace: "silence" } : undefined,
    );
    build.onLoad({ filter: /./, namespace: "silence" }, () => ({ contents: "module.exports = () => () => {};" }));
  },
};
