// Statements of the documents about files and configurations are true.
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { expect, test } from "vitest";
import { command } from "../support/command.ts";
import { complaints } from "../support/config.ts";

const root = resolve(import.meta.dirname, "../..");
const foreign = new Set(["node_modules", ".git", "dist", "coverage"]);
const documents = globSync("**/*.md", { cwd: root, exclude: (name) => foreign.has(basename(name)) });
const textOf = (name: string) => readFileSync(join(root, name), "utf8");
const withoutCode = (text: string) => text.replaceAll(/^ *```[\s\S]*?^ *```/gm, "").replaceAll(/`[^`\n]*`/g, "");

/** The anchor that GitHub generates for a heading. */
const anchor = (heading: string) =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");

test("every relative link in a document has a target", () => {
  const broken: string[] = [];
  let seen = 0;
  for (const name of documents) {
    for (const [, target = ""] of withoutCode(textOf(name)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z][a-z0-9+.-]*:/i.test(target)) continue;
      seen++;
      const [path = "", heading] = target.split("#");
      const file = path === "" ? name : join(dirname(name), path);
      if (!existsSync(join(root, file))) broken.push(`${name}: ${target}`);
      else if (heading !== undefined && file.endsWith(".md")) {
        const headings = [...textOf(file).matchAll(/^#+ (.*)$/gm)].map(([, text = ""]) => anchor(text));
        if (!headings.includes(heading)) broken.push(`${name}: ${target}: no such heading`);
      }
    }
  }
  expect(broken).toEqual([]);
  expect(seen).toBeGreaterThan(30);
});

test("a source file cites only documents of the repository", () => {
  const present = new Set(documents.map((name) => basename(name)));
  const cited = globSync("{src,test,packaging}/**/*.ts", { cwd: root }).flatMap((name) =>
    [...textOf(name).matchAll(/^ *(?:\/\/|\*|\/\*\*) .*?([\w-]+\.md)\b/gm)].map(([, cite = ""]) => ({ name, cite })),
  );
  expect(cited.filter(({ cite }) => !present.has(cite))).toEqual([]);
});

/** The lines of a document from this heading to the next. */
function section(name: string, heading: string): readonly string[] {
  const [, text = ""] = textOf(name).split(`${heading}\n`);
  return (text.split("\n## ")[0] ?? "").split("\n");
}

test.each([
  ["docs/promises.md", "# What is promised about data", 20],
  ["docs/scaling.md", "## What is lost when", 10],
])("every test that a line of the table in %s names is there, and every line names one", (name, heading, least) => {
  const rows = section(name, heading).filter((line) => /^\| (?!promise|what happens|---)/.test(line));
  expect(rows.length).toBeGreaterThan(least);
  const named = rows.map(
    (row) => [row, [...row.matchAll(/`([^`\s]+\.test\.ts)`/g)].map(([, file = ""]) => file)] as const,
  );
  expect(named.filter(([, files]) => files.length === 0).map(([row]) => row)).toEqual([]);
  const files = named.flatMap(([, each]) => each);
  expect(files.filter((file) => !existsSync(join(root, "test", file)))).toEqual([]);
  const titles = rows.flatMap((row) => [...row.matchAll(/`([^`\s]+\.test\.ts)` "([^"]+)"/g)]);
  expect(titles.length).toBeGreaterThan(10);
  const isMissing = ([, file = "", title = ""]: readonly string[]) => !textOf(`test/${file}`).includes(`"${title}`);
  expect(titles.filter(isMissing).map(([cell]) => cell)).toEqual([]);
});

test("every row of the troubleshooting page names a test that exists", () => {
  const rows = textOf("docs/troubleshooting.md").matchAll(/^\| (?!symptom|cause \| meaning|---).*\|$/gm);
  const tests = [...rows].map(([row]) => [row, /`([^`\s]+\.test\.ts)` \|$/.exec(row)?.[1]] as const);
  expect(tests.length).toBeGreaterThan(30);
  expect(tests.filter(([, file]) => file === undefined || !existsSync(join(root, "test", file)))).toEqual([]);
});

test("every document of the folder is in its table of contents", () => {
  const contents = textOf("docs/README.md");
  const pages = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md") && name !== "README.md");
  expect(pages.filter((name) => !contents.includes(`](${name})`))).toEqual([]);
});

test("the table of commands in the README has every command, and no other", async () => {
  const { stdout } = await command(["--help"]);
  const [, listed = ""] = stdout.split("\nCommands:\n");
  const commands = [...listed.matchAll(/^ {2}([a-z][a-z-]*)/gm)]
    .map(([, name]) => name)
    .filter((name) => name !== "help");
  const rows = [...textOf("README.md").matchAll(/^\| `([a-z-]+)/gm)].map(([, name]) => name);
  expect(rows.length).toBe(commands.length);
  expect(new Set(rows)).toEqual(new Set(commands));
});

const complete = documents.flatMap((name) =>
  [...textOf(name).matchAll(/^```yaml complete\n([\s\S]*?)^```/gm)].map(([, text = ""], i) => ({ name, i, text })),
);

test("each kind of source has a page with a complete example", () => {
  const pages = ["mqtt", "modbus", "opcua", "simulator"].map((type) => `src/source/${type}/README.md`);
  expect(complete.map(({ name }) => name)).toEqual(expect.arrayContaining([...pages, "README.md"]));
});

test.each(complete)("the complete example in $name is valid, without a warning", async ({ text }) => {
  const variables = Object.fromEntries([...text.matchAll(/\$\{([A-Z_0-9]+)/g)].map(([, name = ""]) => [name, "x"]));
  const files = Object.fromEntries(
    [...text.matchAll(/\$\{file:([^}]+)\}/g)].map(([, path = ""]) => [resolve("/site", path), "x"]),
  );
  expect(await complaints(text, variables, files)).toBe("");
});
