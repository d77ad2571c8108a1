// `npm ci` can install from the lock file alone, whatever packages of other platforms the registry has.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";

const names = z.record(z.string(), z.string()).default({});
const lockFile = z.object({
  packages: z.record(z.string(), z.object({ dependencies: names, optionalDependencies: names })),
});

test("the lock file has an entry for every package that it names, including those of other platforms", () => {
  const text = readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8");
  const { packages } = lockFile.parse(JSON.parse(text));

  const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => !foldersAbove(path).some((folder) => `${folder}node_modules/${name}` in packages))
      .map((name) => `${path} needs ${name}`),
  );

  // An optional package without an entry makes the lock file outdated for npm if the registry does not have the
  // package.
  expect(missing).toEqual([]);
});

/** The folders in which the package at `path` looks for its dependencies. */
function foldersAbove(path: string): readonly string[] {
  const nested = path === "" ? [] : path.split("node_modules/").slice(1);
  return ["", ...nested.map((_, i) => `node_modules/${nested.slice(0, i + 1).join("node_modules/")}`)].map((folder) =>
    folder === "" || folder.endsWith("/") ? folder : `${folder}/`,
  );
}
