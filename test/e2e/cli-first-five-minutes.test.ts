// docs/first-five-minutes.md, step by step: each line of output that the page shows is printed.
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { command } from "../support/command.ts";
import { blocksOf } from "../support/documents.ts";
import { eventually } from "../support/eventually.ts";
import { password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** The lines that the page shows below `$ npm run -s tagferry -- ARGUMENTS`. */
function shown(args: string): readonly string[] {
  const texts = blocksOf("docs/first-five-minutes.md").map(({ text }) => text);
  const [, output = ""] = texts.join("").split(`$ npm run -s tagferry -- ${args}\n`);
  return shapes(output.split("\n$ ")[0] ?? "");
}

/** Lines without what differs from run to run: addresses, times, hashes, figures and the width of columns. */
const shapes = (text: string) =>
  text
    .split("\n")
    .map((line) =>
      line
        .replaceAll(/https?:\/\/[\w.:]+\d(\/v1)?/g, "URL")
        .replaceAll(/\[[^\]]*\]/g, "[]")
        .replaceAll(/\b[0-9a-f]{12}\b/g, "HASH")
        .replaceAll(/(\d+[hm] ?)?\d[\d.,:TZ-]*( ?(ms|[smh]|B|[KMG]iB)\b)?/g, "N")
        .replaceAll(/ +/g, " ")
        .trim(),
    )
    .filter((line) => line !== "");

test("each step of the page prints the lines that stand there", async () => {
  using folder = temporaryFolder();
  await using service = await testService();
  const variables = { npm_lifecycle_event: "tagferry" };
  const at = { cwd: folder.path, variables };
  const type = async (args: string) => {
    const { status, stdout, stderr } = await command(args.split(" "), at);
    expect(status, stderr).toBe(0);
    return shapes(stdout + stderr);
  };

  const init = await command(["init"], { ...at, answers: ["gw1", service.url, "", "", password, "simulator", ""] });
  const printed = shapes([init.stderr, init.stdout, ...init.questions].join("\n").replaceAll(" (hidden)", ""));
  const lines = shown("init");
  expect(lines.length).toBeGreaterThan(10);
  // The page shows the answer behind each question.
  expect(lines.filter((line) => !printed.some((each) => each === line || line.startsWith(`${each} `)))).toEqual([]);

  const check = "check -c tagferry.yaml --online";
  expect(await type(check)).toEqual(expect.arrayContaining([...shown(check)]));
  const once = "test -c tagferry.yaml --once";
  expect(await type(once)).toEqual(shown(once));

  const configuration = readFileSync(folder.file("tagferry.yaml"), "utf8")
    .replace("127.0.0.1:8421 }", "127.0.0.1:0 }")
    .replace("  # dataDir: /var/lib/tagferry ", `  dataDir: ${folder.file("data")} `);
  await using agent = await startAgent({ folder: folder.path, configuration });
  const page = shown("status -c tagferry.yaml");
  let status: readonly string[] = [];
  const isAsShown = eventually(async () => {
    const { stdout } = await command(["status", "--url", agent.page], at);
    status = shapes(stdout);
    // The agent's own signals are measured 10 s after its start.
    return stdout.includes("12 of 12 saved") && isDeepStrictEqual(status, page);
  }, 120_000);
  await isAsShown.catch(() => expect(status).toEqual(page));

  expect(await eventually(() => command(["signals", "publish", "-c", "tagferry.yaml"], at))).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("12 items published"),
  });
  const read = "read -c tagferry.yaml demo.sine --since 2m --format plot";
  expect((await type(read))[0]).toBe(shown(read)[0]);
});
