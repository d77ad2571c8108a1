import { expect, test } from "vitest";
import type { KnownCertificate } from "../../../src/core/commissioning.ts";
import { openDetails } from "../../../src/web/details.ts";
import { History } from "../../../src/web/history.ts";
import { ManualClock } from "../../support/runtime.ts";

const none = new URLSearchParams();
const isWindows = process.platform === "win32";
const certificate: KnownCertificate = {
  thumbprint: "9f86",
  sha256: "9f86d081",
  subject: "CN=press",
  applicationUri: undefined,
  validFrom: "Mar  1 08:00:00 2024 GMT",
  validTo: "Mar  1 08:00:00 2034 GMT",
  state: "rejected",
  path: "/data/pki/rejected/9f86.der",
};

test("only refused certificates are pending, with the command that trusts them and machine-readable times", async () => {
  const known = (["trusted", "rejected", "issuer", "own"] as const).map((state) => ({ ...certificate, state }));
  const details = openDetails({ certificates: async () => known, configFile: "/etc/it's.yaml" }, new History(), {
    clock: new ManualClock(),
  });
  const { state: _, path: __, ...shown } = certificate;
  expect(await details["/api/certificates"]?.(none, true)).toEqual({
    waiting: [
      {
        ...shown,
        validFrom: "2024-03-01T08:00:00.000Z",
        validTo: "2034-03-01T08:00:00.000Z",
        command: isWindows
          ? `tagferry trust accept 9f86 -c "/etc/it's.yaml"`
          : "tagferry trust accept 9f86 -c '/etc/it'\\''s.yaml'",
      },
    ],
    more: 0,
  });
});

test("the path of the configuration is shown to this machine only", async () => {
  const details = openDetails(
    { certificates: async () => [certificate], configFile: "/etc/plant 1/agent.yaml" },
    new History(),
    { clock: new ManualClock() },
  );
  for (const path of ["/api/certificates", "/api/rejects"]) {
    expect(JSON.stringify(await details[path]?.(none, true))).toContain(
      isWindows ? '-c \\"/etc/plant 1/agent.yaml\\"' : "-c '/etc/plant 1/agent.yaml'",
    );
    const answer = JSON.stringify(await details[path]?.(none, false));
    expect(answer).toContain("-c FILE");
    expect(answer).not.toContain("/etc");
  }
});

test("the disk is read every 2 s at most, however many requests arrive, and a failure is not cached", async () => {
  const clock = new ManualClock();
  let reads = 0;
  const details = openDetails(
    {
      certificates: async () => {
        reads++;
        if (reads === 2) throw new Error("disk");
        return [];
      },
    },
    new History(),
    { clock },
  );
  const ask = async () => details["/api/certificates"]?.(none, true);
  await Promise.all([ask(), ask(), ask()]);
  expect(reads).toBe(1);
  await clock.advance(2_000);
  await expect(ask()).rejects.toThrow("disk");
  await ask();
  expect(reads).toBe(3);
});

test("a read that fails late leaves the answer of the next one in the cache", async () => {
  const clock = new ManualClock();
  const reading: PromiseWithResolvers<KnownCertificate[]>[] = [];
  const certificates = () => {
    const read = Promise.withResolvers<KnownCertificate[]>();
    reading.push(read);
    return read.promise;
  };
  const details = openDetails({ certificates }, new History(), { clock });
  const ask = async () => details["/api/certificates"]?.(none, true);

  const slow = ask();
  await clock.advance(2_000);
  const next = ask();
  reading[0]?.reject(new Error("disk"));
  await expect(slow).rejects.toThrow("disk");
  const third = ask();
  reading[1]?.resolve([]);
  await next;
  expect(reading).toHaveLength(2);
  await third;
});

test("reasons and inputs of refused points are bounded, and the omitted ones are counted", async () => {
  const reasons = Array.from({ length: 60 }, (_, i) => ({
    code: 400,
    reason: `reason ${i}`,
    points: 8,
    inputs: new Map(Array.from({ length: 8 }, (_, n) => [`tag${n}`, 1] as const)),
    earliest: undefined,
    latest: undefined,
  }));
  const details = openDetails({ rejects: async () => ({ points: 480, unreadable: 0, reasons }) }, new History(), {
    clock: new ManualClock(),
  });
  const answer = await details["/api/rejects"]?.(none, true);
  expect(answer).toMatchObject({
    points: 480,
    moreReasons: 10,
    commands: { list: "tagferry rejects list", retry: "tagferry rejects retry" },
  });
  expect(answer).toHaveProperty("reasons.length", 50);
  expect(answer).toHaveProperty("reasons[0].moreInputs", 3);
});

test("without details nothing is shown", async () => {
  const details = openDetails({}, new History(), { clock: new ManualClock() });
  expect(details["/api/gaps"]?.(none, true)).toEqual({ gaps: [] });
  expect(await details["/api/certificates"]?.(none, true)).toEqual({ waiting: [], more: 0 });
  expect(await details["/api/rejects"]?.(none, true)).toMatchObject({ points: 0, reasons: [] });
});

test("values from the service are shared for 30 s, spans are fixed, and few requests wait", async () => {
  const clock = new ManualClock();
  const asked: string[] = [];
  const waiting: (() => void)[] = [];
  const details = openDetails(
    {
      series: (input, spanMs) => {
        asked.push(`${input} ${spanMs}`);
        return new Promise((resolve) => waiting.push(() => resolve({ times: [1], values: [2] })));
      },
    },
    new History(),
    { clock },
  );
  const read = async (input: string, since: string) => {
    const answer = details["/api/series"]?.(new URLSearchParams({ input, since }), true);
    for (const answered of waiting.splice(0)) answered();
    return await answer;
  };
  expect(await read("a", "1d")).toEqual({ ok: true, times: [1], values: [2] });
  expect(await read("a", "1d")).toEqual({ ok: true, times: [1], values: [2] });
  expect(asked).toEqual(["a 86400000"]);
  await clock.advance(31_000);
  await read("a", "1d");
  expect(asked).toHaveLength(2);
  expect(await read("a", "2d")).toMatchObject({ ok: false, reason: expect.stringContaining("1h, 1d, 7d or 30d") });
  for (const input of ["b", "c", "d", "e"])
    void details["/api/series"]?.(new URLSearchParams({ input, since: "1h" }), true);
  expect(await details["/api/series"]?.(new URLSearchParams({ input: "f", since: "1h" }), true)).toMatchObject({
    ok: false,
    reason: expect.stringContaining("wait"),
  });
  expect(asked).toHaveLength(6);
});

test("the text of a tag is read from the disk once in 10 s, however often its page asks", async () => {
  const clock = new ManualClock();
  let reads = 0;
  const readText = async () => `- input: b${++reads}`;
  const tag = () => ({ status: {}, place: { file: "/etc/agent.yaml", line: 3 }, readText });
  const details = openDetails({ tag }, new History(), { clock });
  const ask = async () => details["/api/tag"]?.(new URLSearchParams({ input: "b" }), true);
  await Promise.all([ask(), ask()]);
  expect(await ask()).toMatchObject({ found: true, text: "- input: b1" });
  await clock.advance(11_000);
  expect(await ask()).toMatchObject({ text: "- input: b2" });
});

test("answers about inputs that do not exist do not collect", async () => {
  let asked = 0;
  const series = async () => {
    asked++;
    throw new Error("unknown");
  };
  const details = openDetails({ series }, new History(), { clock: new ManualClock() });
  const read = async (n: number) =>
    details["/api/series"]?.(new URLSearchParams({ input: `input${n}`, since: "1h" }), true);
  for (let n = 0; n < 100; n++) expect(await read(n)).toMatchObject({ ok: false });
  await read(99);
  expect(asked).toBe(100);
  await read(0);
  expect(asked).toBe(101);
});

test("two tags of one place have the texts of their own templates, whose file is not shown", async () => {
  const place = { file: "/etc/agent.yaml", line: 9 };
  const tag = (_source: string, line: number) => ({
    status: {},
    place,
    template: { file: "/etc/agent.yaml", line },
    readText: async () => `line ${line}`,
  });
  const details = openDetails({ tag }, new History(), { clock: new ManualClock() });
  const ask = async (n: number) => details["/api/tag"]?.(new URLSearchParams({ tag: String(n), input: "b" }), false);
  expect([await ask(6), await ask(7)]).toMatchObject([{ text: "line 6" }, { text: "line 7" }]);
  expect(JSON.stringify(await ask(6))).not.toContain("/etc");
});

test("where a tag is written is shown to this machine only", async () => {
  const tag = () => ({ status: {}, place: { file: "/etc/plant 1/agent.yaml", line: 3 } });
  const details = openDetails({ tag }, new History(), { clock: new ManualClock() });
  const shown = (local: boolean) =>
    details["/api/tag"]?.(new URLSearchParams({ source: "a", tag: "0", input: "b" }), local);
  expect(await shown(true)).toMatchObject({ found: true, place: { file: "/etc/plant 1/agent.yaml", line: 3 } });
  expect(await shown(false)).toMatchObject({ found: true, place: { file: "FILE", line: 3 } });
});
