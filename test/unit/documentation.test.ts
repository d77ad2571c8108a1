// Statements of the documents about files, tests, commands, metrics and limits are true.
import { existsSync, globSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { words } from "../../src/agent/status/words.ts";
import { exitStatus } from "../../src/cli/terminal/exit-status.ts";
import { withSlashes } from "../../src/lib/files/paths.ts";
import { command } from "../support/command.ts";
import { declaredMetrics } from "../support/declared-metrics.ts";
import { type DocumentedLimit, documentedLimits } from "../support/documented-limits.ts";
import {
  commandLinesOf,
  completedWords,
  documents,
  isOption,
  manuals,
  proofsOf,
  root,
  spansOf,
  textOf,
  withoutBlocks,
} from "../support/documents.ts";

const spans = manuals.flatMap(spansOf);
const all = (pattern: string) => globSync(pattern, { cwd: root }).map(withSlashes);

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
    const prose = withoutBlocks(textOf(name)).replaceAll(/`[^`\n]*`/g, "");
    for (const [, target = ""] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
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
  const cited = all("{src,test,packaging}/**/*.ts").flatMap((name) =>
    [...textOf(name).matchAll(/^ *(?:\/\/|\*|\/\*\*) .*?([\w-]+\.md)\b/gm)].map(([, cite = ""]) => ({ name, cite })),
  );
  expect(cited.filter(({ cite }) => !present.has(cite))).toEqual([]);
});

test("every file that a document names exists", () => {
  const files = all("{src,test,packaging}/**/*").map((name) => `/${name}`);
  const isMissing = (text: string) =>
    /^(src|test|docs|packaging|config|systemd|\.ci)\/[\w./-]+$/.test(text)
      ? !["", ".test.ts", ".peer.test.ts"].some((end) => existsSync(join(root, text + end)))
      : /^[\w./-]+\.ts$/.test(text) && !files.some((file) => file.endsWith(`/${text.replace(/^(\.\.?\/)+/, "")}`));
  const named = spans.filter(({ text }) => !/NAME/.test(text));
  expect(named.filter(({ text }) => isMissing(text))).toEqual([]);
});

const proofs = manuals.flatMap(proofsOf);

test("every row of a table of proofs names tests, and all of them exist", () => {
  const tests = all("test/**/*").map((name) => `/${name.replace(/(\.peer)?(\.test)?\.ts$/, "")}`);
  const exists = (name: string) => {
    const file = name.replace(/^test\//, "").replace(/(\.peer)?(\.test)?(\.ts)?\/?$/, "");
    const pattern = file.replaceAll(".", "\\.").replaceAll("*", "[^/]*").replaceAll("…", ".*");
    return tests.some((each) => new RegExp(`/${pattern}$`).test(each));
  };
  const named = proofs.map(({ document, row, cell }) => ({
    document,
    row,
    tests: [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name).filter((name) => !/^[A-Z_]+(=|$)/.test(name)),
  }));
  expect(named.filter(({ tests }) => tests.length === 0)).toEqual([]);
  expect(named.flatMap(({ tests }) => tests).filter((name) => !exists(name))).toEqual([]);
  for (const [document, least] of Object.entries({ promises: 20, scaling: 10, troubleshooting: 30, security: 30 }))
    expect(proofs.filter((proof) => proof.document === `docs/${document}.md`).length).toBeGreaterThan(least);
});

test("every title of a test that a table of proofs quotes is in its file", () => {
  const titles = proofs.flatMap(({ cell }) =>
    [...cell.matchAll(/`([^`\s]+)`((?:,? "[^"]+")+)/g)].flatMap(([, file = "", quoted = ""]) =>
      [...quoted.matchAll(/"([^"]+)"/g)].map(([, title = ""]) => ({ file, title })),
    ),
  );
  const isMissing = ({ file, title }: { file: string; title: string }) => {
    const [path = ""] = all(`test/{,integration/}${file.replace(/(\.test\.ts)?$/, "")}{,.test}.ts`);
    // An ellipsis stands for a part of the title; a row of `test.each` has its values there.
    const parts = title.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return path === "" || !new RegExp(`"${parts.join('[^"\\n]*')}`).test(textOf(path));
  };
  expect(titles.length).toBeGreaterThan(60);
  expect(titles.filter(isMissing)).toEqual([]);
});

test("the troubleshooting page quotes messages of the program, and has every cause of a gap", () => {
  const page = textOf("docs/troubleshooting.md");
  const program = all("src/**/*.ts").map(textOf).join("\n");
  const quoted = [...page.matchAll(/"([^"]+)"/g)].flatMap(([, text = ""]) => text.split("…"));
  expect(quoted.filter((text) => !program.includes(text.trim()))).toEqual([]);
  const causes = Object.values(words.gapCause).map(({ word }) => `\n| \`${word}\` |`);
  expect(causes.filter((row) => !page.includes(row))).toEqual([]);
});

test("no document has a word that hides who does what", () => {
  const vague = /\b(unsaid|anew|told|untold|somebody|nobody|whoever)\b/i;
  expect(manuals.filter((name) => vague.test(textOf(name)))).toEqual([]);
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

test("every command line that a document shows has a known command and known options", async () => {
  const places = completedWords((await command(["completion", "bash"])).stdout);
  const lines = manuals.flatMap((name) => commandLinesOf(name, (word) => word !== "" && places.has(word)));
  const unknown = ({ words }: (typeof lines)[number]) => {
    const [first = "", second = ""] = words;
    const [place, rest] = places.has(`${first} ${second}`) ? [`${first} ${second}`, words.slice(2)] : [first, words];
    const isGroup = [...places.keys()].some((key) => key.startsWith(`${place} `));
    if (!places.has(place) || (isGroup && /^[a-z]+$/.test(rest[1] ?? ""))) return true;
    return rest.some((word) => isOption(word) && !places.get(place)?.includes(word));
  };
  expect(lines.filter(unknown).filter(({ words }) => words[0] !== "COMMAND")).toEqual([]);
  expect(lines.length).toBeGreaterThan(100);
  const choices = spans.flatMap(({ text }) => {
    const [, group = "", words] = /^([a-z][a-z-]+) ([a-z]+(?:\|[a-z]+)+)/.exec(text) ?? [];
    return words?.split("|").map((word) => ({ group, word })) ?? [];
  });
  expect(choices.length).toBeGreaterThan(15);
  expect(choices.filter(({ group, word }) => !places.get(group)?.includes(word))).toEqual([]);
});

test("every script of npm that a document runs exists", () => {
  const { scripts } = JSON.parse(textOf("package.json"));
  const run = manuals.flatMap((name) => [...textOf(name).matchAll(/npm run (?:-s )?([a-z:]+)/g)]);
  expect(run.filter(([, script = ""]) => !(script in scripts)).map(([line]) => line)).toEqual([]);
});

test("every metric that a document names is declared", () => {
  const declared = declaredMetrics().map(({ name }) => name);
  const metric = /^(tagferry_)?((?:source|mapping|buffer|upload|cluster|gap|clock|process|build|config|otlp)_[a-z_]+)/;
  const named = spans.flatMap(({ document, text }) => {
    const [, , name] = metric.exec(text) ?? [];
    return name === undefined ? [] : [{ document, name: `tagferry_${name}` }];
  });
  const exists = (name: string) =>
    declared.some((each) => (name.endsWith("_") ? each.startsWith(name) : each === name));
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter(({ name }) => !exists(name))).toEqual([]);
});

/** Names of other programs, and options that a page says do not exist. */
const elsewhere = ["addressBase", "json_timestamp_units", "usage_idle", "--allow-addons", "--allow-worker"];

test("every identifier, error code, variable and flag that a document names is in the program or its tests", () => {
  const files = [...all("{src,packaging,test}/**/*.{ts,js,cjs,py,yaml,conf}"), ...all("config/recipes/*/*.yaml")];
  const program = files.filter((name) => name !== "test/unit/documentation.test.ts").map(textOf);
  const text = [textOf("config/reference.md"), ...program].join("\n");
  const identifier =
    /^(?:[a-z]+[A-Z]\w*|[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]|[a-z]+_[a-z0-9_]*[a-z0-9]|--[a-z-]+)(?=$|[ =])/;
  const named = new Set(spans.flatMap(({ text }) => identifier.exec(text) ?? []));
  const isMissing = (name: string) =>
    !new RegExp(`(?<![\\w-])${name.replace(/^tagferry_/, "(tagferry_)?")}(?![\\w-])`).test(text);
  expect(named.size).toBeGreaterThan(150);
  expect([...named].filter((name) => !elsewhere.includes(name) && isMissing(name))).toEqual([]);
});

test("the operator's guide has every file and folder of the data directory", () => {
  const joined = /\b(?:join|resolve)\((?:[\w.#]+\.)?dataDir, "([\w.]+)"/g;
  const names = all("src/**/*.ts").flatMap((name) => [...textOf(name).matchAll(joined)].map(([, entry = ""]) => entry));
  const guide = textOf("docs/operating.md");
  expect(new Set(names).size).toBeGreaterThan(7);
  expect(names.filter((name) => !guide.includes(`\n| \`${name}`))).toEqual([]);
});

test("every path below a port that a document names is in the program", () => {
  const program = all("src/**/*.{ts,js}").map(textOf).join("\n");
  const paths = spans.filter(({ text }) => /^\/((api|v1)\/[\w/-]+|[a-z]+)$/.test(text));
  expect(paths.length).toBeGreaterThan(20);
  expect(paths.filter(({ text }) => !program.includes(text))).toEqual([]);
});

test("the exit statuses in the README are those of the program, and no document names another one", () => {
  const [, list = ""] = /Exit status: ([^]*?)\./.exec(textOf("README.md")) ?? [];
  const statuses = Object.values(exitStatus);
  expect([...list.matchAll(/\d+/g)].map(Number)).toEqual(statuses);
  const named = manuals.flatMap((name) => [...textOf(name).matchAll(/exit status (\d+)/gi)]).map(([, n]) => Number(n));
  expect(named.filter((n) => !statuses.some((status) => status === n))).toEqual([]);
});

test("the options of the local service are those of its help", async () => {
  const { stdout } = await command(["service", "--help"]);
  const [, table = ""] = /^## Options\n([^]*?)^## /m.exec(textOf("docs/local-service.md")) ?? [];
  const flags = (text: string) => new Set([...text.matchAll(/(?:^|[ `])(--[a-z][a-z-]+)/gm)].map(([, flag]) => flag));
  expect(flags(table.replaceAll(/Faults:[^]*/g, ""))).toEqual(
    flags(stdout.replace(/Example:.*/, "").replace("--help", "")),
  );
});

test("every limit that a document states is the one in the program", () => {
  const isSaid = ({ document, phrase }: DocumentedLimit) => textOf(document).replaceAll(/\s+/g, " ").includes(phrase);
  const isSo = ({ file, line }: DocumentedLimit) => textOf(file).includes(line);
  expect(documentedLimits.filter((limit) => !isSaid(limit) || !isSo(limit))).toEqual([]);
});
