// The difference that a person sees before a file is written: without the secrets of the file.
import { expect, test } from "vitest";
import { addTags } from "../../../src/discover/change/add-tags.ts";
import { difference } from "../../../src/discover/change/config-files.ts";

const tag = { text: "{ input: new, topic: t }" };

test.for<[string, string]>([
  ["a source in braces", 'sources: { s: { url: "mqtt://h", password: canary, tags: [] } }\n'],
  ["an address with a login", 'sources:\n  s: { url: "mqtt://reader:canary@h", tags: [{ input: a, topic: a }] }\n'],
  ["a comment next to an empty list", "sources:\n  s:\n    url: mqtt://h\n    tags: []   # canary\n"],
])("a changed line shows no secret: %s", ([, before]) => {
  const after = addTags(before, "s", [tag]);
  expect(after).toContain("canary");
  expect(difference("f.yaml", before, after)).toMatch(/^\+/m);
  expect(difference("f.yaml", before, after)).not.toContain("canary");
});

test("an added line is shown as it is written, whatever the device calls the tag", () => {
  const before = "sources:\n  s:\n    password: canary\n    tags:\n      - { input: a, topic: a }\n";
  const text = "{ input: b, topic: password rope # 1 }";
  expect(difference("f.yaml", before, addTags(before, "s", [{ text }]))).toBe(`--- f.yaml
+++ f.yaml
@@ -3,3 +3,4 @@
     password: ***
     tags:
       - { input: a, topic: a }
+      - ${text}`);
});
