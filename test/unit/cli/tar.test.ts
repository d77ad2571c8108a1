// The archive format, checked with the system's tar.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { tar } from "../../../src/cli/inspect/support-bundle.ts";
import { has } from "../../support/platform.ts";
import { runs } from "../../support/property.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test.runIf(has.shell)("the system's tar unpacks what was packed, byte for byte", () => {
  using folder = temporaryFolder();
  const archive = folder.file("a.tar");
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 1_100 }), { minLength: 1, maxLength: 4 }), (contents) => {
      const files = contents.map((data, i) => ({ name: `folder/${i}.bin`, data }));
      writeFileSync(archive, tar(files, 1_700_000_000.9));
      for (const { name, data } of files) {
        const { stdout, stderr, status } = spawnSync("tar", ["-xOf", archive, name]);
        expect({ status, stderr: String(stderr) }).toEqual({ status: 0, stderr: "" });
        expect(new Uint8Array(stdout)).toEqual(new Uint8Array(data));
      }
    }),
    runs(8),
  );
  expect(String(spawnSync("tar", ["-tvf", archive], { env: { TZ: "UTC" } }).stdout)).toContain("2023-11-14 22:13");
});

test("a name that the format cannot express is refused", () => {
  expect(() => tar([{ name: "x".repeat(101), data: new Uint8Array() }], 0)).toThrow(RangeError);
});
