// The next commands that `init` suggests.
import { expect, test } from "vitest";
import { nextSteps } from "../../../src/cli/configure/init.ts";

test("the next step runs an own file by hand, the package's file by systemd, and in the repository npm", () => {
  expect(nextSteps("site.yaml", {})).toBe("next: tagferry check -c site.yaml --online, then tagferry run -c site.yaml");
  expect(nextSteps("/etc/tagferry/tagferry.yaml", {})).toBe(
    "next: tagferry check --online, then systemctl start tagferry",
  );
  expect(nextSteps("site.yaml", { npm_lifecycle_event: "tagferry" })).toBe(
    "next: npm run tagferry -- check -c site.yaml --online, then npm run tagferry -- run -c site.yaml",
  );
});

test("the next step quotes a file whose name a shell would divide", () => {
  expect(nextSteps("line 1/site.yaml", {})).toMatch(
    /^next: tagferry check -c (['"])line 1\/site\.yaml\1 --online, then tagferry run -c \1line 1\/site\.yaml\1$/,
  );
});
