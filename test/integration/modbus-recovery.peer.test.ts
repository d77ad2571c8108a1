// A serial adapter that is unplugged and plugged in again: pseudo terminals behind a fixed device name.
import { rename, symlink } from "node:fs/promises";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { libmodbus } from "../support/libmodbus.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { keepReading } from "../support/modbus-keep-reading.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("an adapter that returns under another number is read again, and others are not disturbed", async () => {
  using folder = temporaryFolder();
  await using neighbour = await modbusDevice();
  neighbour.unit(1).set("hr", 0, [9]);
  const adapter = folder.file("by-id-adapter");
  const plugIn = async (words: readonly number[]) => {
    const server = await libmodbus("rtu", words);
    const { pathname, search } = new URL(server.url);
    await symlink(pathname, `${adapter}.new`);
    await rename(`${adapter}.new`, adapter);
    return { server, pathname, search };
  };
  const first = await plugIn([7]);
  await using line = keepReading({ url: `rtu://${adapter}${first.search}`, timeout: "200ms" }, [{ at: "hr:0" }]);
  await using other = keepReading({ url: neighbour.url, timeout: "10s" }, [{ at: "hr:0" }]);
  await eventually(() => line.count("good") >= 3);

  await first.server[Symbol.asyncDispose]();
  await eventually(() => line.losses.length >= 3);
  const unplugged = line.readings.length;
  const second = await plugIn([8]);
  await using _second = second.server;
  await eventually(() => line.readings.slice(unplugged).filter((r) => r.quality === "good").length >= 3);

  expect(new Set(line.losses)).toEqual(new Set(["SOURCE_UNREACHABLE"]));
  expect(line.readings.slice(0, unplugged).every((r) => r.value === 7 || r.quality === "bad")).toBe(true);
  expect(line.readings.slice(unplugged).every((r) => r.value === 8 || r.quality === "bad")).toBe(true);
  expect([other.losses, other.count("bad")]).toEqual([[], 0]);
});
