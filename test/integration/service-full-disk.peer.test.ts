// A full disk: a tmpfs of a few MiB. Needs root.
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { testRuntime } from "../support/runtime.ts";
import { integration, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** A folder on a disk of `mib`, and a file on it that can be deleted to free space. */
function smallDisk(mib: number): { readonly data: string; readonly ballast: string } {
  const folder = temporaryFolder();
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${mib}m`, "none", folder.path]);
  onTestFinished(() => {
    execFileSync("umount", [folder.path]);
    folder[Symbol.dispose]();
  });
  const ballast = join(folder.path, "ballast");
  writeFileSync(ballast, new Uint8Array(4 * 2 ** 20));
  return { data: join(folder.path, "data"), ballast };
}

const frameOf = (request: number) => {
  const times = Array.from({ length: 2_000 }, (_, i) =>
    new Date(Date.UTC(2026, 0, 1) + (request * 2_000 + i) * 1_000).toISOString(),
  );
  // Values that do not compress.
  const values = times.map((_, i) => Math.sin(i));
  const series = Object.fromEntries(Array.from({ length: 20 }, (_, s) => [`s${s}.${request}`, values]));
  return { times, series };
};

test("on a full disk an insert answers -32603 and stores nothing; once there is space it succeeds", async () => {
  const { data, ballast } = smallDisk(8);
  const runtime = testRuntime();
  const service = await testService({ data }, runtime);
  onTestFinished(() => service[Symbol.asyncDispose]());
  const insert = (n: number) => service.call("integration.insert", { integration, data: frameOf(n) });
  const inputs = async () => {
    const { body } = await service.call("admin.selectSignals", {
      integration,
      signals: { include: true, limit: 1_000 },
    });
    return Object.values(body?.result?.["signals"] ?? {}).map((signal) => (signal as { inputId: string }).inputId);
  };
  let stored = 0;
  let refused: Awaited<ReturnType<typeof insert>> | undefined;
  for (; stored < 40 && !refused; stored++) {
    const answer = await insert(stored);
    if (answer.body?.error) refused = answer;
  }
  stored--;
  expect(refused?.status).toBe(200);
  expect(refused?.body?.error).toMatchObject({ code: -32603, message: "Internal error" });
  expect(runtime.lines.some(({ level, fields }) => level === "error" && /full/i.test(String(fields["failure"])))).toBe(
    true,
  );
  expect((await inputs()).filter((input) => input.endsWith(`.${stored}`))).toEqual([]);
  expect((await inputs()).length).toBe(stored * 20);
  rmSync(ballast);
  expect((await insert(stored)).body?.result?.["signalsByInput"][`s0.${stored}`].created).toBe(true);
  expect((await inputs()).length).toBe((stored + 1) * 20);
});
