// The program's dependencies: few packages, under licences that permit redistribution, each pinned by its checksum.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";

const root = new URL("../../", import.meta.url);
const lockFile = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      license: z.string().optional(),
      dev: z.boolean().optional(),
      os: z.union([z.string(), z.array(z.string())]).optional(),
      optional: z.boolean().optional(),
      integrity: z.string().optional(),
      resolved: z.string().optional(),
      link: z.boolean().optional(),
    }),
  ),
});
const read = (path: string) => readFileSync(new URL(path, root), "utf8");
const { packages } = lockFile.parse(JSON.parse(read("package-lock.json")));
const locked = Object.entries(packages).filter(([path]) => path !== "");
const delivered = locked.filter(([, { dev }]) => !dev);

/** All of them permit redistribution, with or without source code. */
const allowed = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unlicense"];
/** Its package.json names no licence; its README names MIT. */
const namesNone = ["node_modules/precond"];

test("every shipped package has a permitted licence", () => {
  const others = delivered.filter(([, { license }]) => license === undefined || !allowed.includes(license));
  expect(others.map(([path]) => path)).toEqual(namesNone);
});

test("the dependency tree stays small: the packages that a new one brings are reviewed before the bound is raised", () => {
  const installed = delivered.filter(([, { os }]) => os === undefined || [os].flat().includes("linux"));
  expect(installed.length).toBeLessThanOrEqual(234);
});

test("packages come only from the registry, by version and checksum", () => {
  for (const [path, { version, integrity, resolved, link }] of locked) {
    expect(version, path).toMatch(/^\d+\.\d+\.\d+/);
    expect([path, resolved, link]).toEqual([path, undefined, undefined]);
    // Also of packages for other platforms, which npm would install there unchecked.
    expect(integrity, path).toMatch(/^sha(512|256|1)-/);
  }
  const { dependencies, devDependencies, optionalDependencies } = z
    .record(z.string(), z.unknown())
    .parse(JSON.parse(read("package.json")));
  for (const version of Object.values({
    ...Object(dependencies),
    ...Object(devDependencies),
    ...Object(optionalDependencies),
  }))
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(read(".npmrc")).toMatch(/^ignore-scripts=true$/m);
});

test("npm gives a bill of materials of the shipped packages", () => {
  // On Windows npm is a script for cmd.exe, and Wine's shows its first line.
  const shell = process.platform === "win32";
  const args = ["sbom", "--omit", "dev", "--sbom-format", "cyclonedx"];
  const text = execFileSync("npm", args, { cwd: root, encoding: "utf8", shell });
  const bill = z
    .object({ bomFormat: z.literal("CycloneDX"), components: z.array(z.object({ name: z.string() })) })
    .parse(JSON.parse(text.slice(text.indexOf("{"))));
  const names = bill.components.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["mqtt", "pino", "zod"]));
  expect(names).not.toContain("vitest");
});
