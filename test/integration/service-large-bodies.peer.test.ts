// Bodies that are still arriving take memory too. The other half of this limit is in service-large-answers.
import { request } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { basic, integration, password, testService } from "../support/service.ts";

const MiB = 2 ** 20;

test("a body that arrives slowly counts: beside 256 MiB of others a call is answered 503, until they are gone", async () => {
  await using service = await testService({ maxInsert: 300 * MiB });
  const slow = request(`${service.url}/rpc`, {
    method: "POST",
    headers: { authorization: basic(integration, password), "content-type": "application/json" },
  });
  onTestFinished(() => void slow.destroy());
  slow.on("error", () => {}); // destroyed below
  slow.write('{"jsonrpc":"2.0","id":1,"method":"integration.insert","params":{');
  const status = async () => (await service.call("platform.selectItems", {})).status;
  const statuses: number[] = [];
  for (let mib = 0; mib < 258; mib++) {
    await new Promise((resolve) => slow.write(Buffer.alloc(MiB, " "), resolve));
    if (mib < 240 && mib % 64 === 0) statuses.push(await status());
  }
  expect(statuses).toEqual([200, 200, 200, 200]);
  await eventually(async () => (await status()) === 503);
  slow.destroy();
  await eventually(async () => (await status()) === 200);
});
