// The first steps with Modbus devices, most of them on third-party stacks: init, check --online, test, run, status.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { startAgent } from "../support/agent-process.ts";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { libmodbus } from "../support/libmodbus.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { pymodbus } from "../support/pymodbus.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

interface Device extends AsyncDisposable {
  /** The address as the user types it for `init`. */
  readonly place: string;
  readonly url: string;
  /** The number of tags that `init` writes, and one of them with its value. */
  readonly tags: number;
  readonly known: { readonly input: string; readonly at: string; readonly value: number };
  /** Further options of the source in the configuration. */
  readonly options?: Readonly<Record<string, string>>;
}

/** 229.81 as a float at hr:10, and integers at hr:0. */
const words = { hr: { 0: [2292, 17, 501], 10: [0x4365, 0xcf5c] } };
const known = { input: "unit1.hr:10", at: "hr:10 f32", value: 229.81 };

async function pymodbusAt(scheme: "tcp" | "rtu+tcp", framer: "socket" | "rtu"): Promise<Device> {
  const server = await pymodbus({ transport: "tcp", framer, units: { 1: words } });
  const url = `${scheme}://127.0.0.1:${server.port}`;
  const end = () => server[Symbol.asyncDispose]();
  return { place: `${url}?unit=1&to=20`, url, tags: 4, known, [Symbol.asyncDispose]: end };
}

const devices: Readonly<Record<string, () => Promise<Device>>> = {
  "Modbus TCP, pymodbus": () => pymodbusAt("tcp", "socket"),
  "RTU over TCP, pymodbus": () => pymodbusAt("rtu+tcp", "rtu"),
  async "Modbus TCP, libmodbus"() {
    const server = await libmodbus("tcp", [2292, 17, 501]);
    const end = () => server[Symbol.asyncDispose]();
    // The same words in both register tables, and a bit in both bit tables.
    const at = { input: "unit1.hr:0", at: "hr:0 u16", value: 2292 };
    return { place: `${server.url}?unit=1&to=3`, url: server.url, tags: 8, known: at, [Symbol.asyncDispose]: end };
  },
  async "a device that is silent when asked for more than 20 registers"() {
    const device = await modbusDevice();
    device.unit(1).set(
      "hr",
      0,
      Array.from({ length: 60 }, (_, i) => 100 + i),
    );
    for (const table of ["ir", "co", "di"] as const) device.unit(1).refuse(table, 0, 65_535, 1);
    device.unit(1).silentAbove = 20;
    const end = () => device[Symbol.asyncDispose]();
    const at = { input: "unit1.hr:59", at: "hr:59 u16", value: 159 };
    return { place: `${device.url}?unit=1&to=60`, url: device.url, tags: 60, known: at, [Symbol.asyncDispose]: end };
  },
  async "a device that echoes unit 0"() {
    const device = await modbusDevice();
    device.unit(1).set("hr", 0, [2292]);
    for (const table of ["ir", "co", "di"] as const) device.unit(1).refuse(table, 0, 65_535, 2);
    device.echoUnit = 0;
    const end = () => device[Symbol.asyncDispose]();
    const at = { input: "unit1.hr:0", at: "hr:0 u16", value: 2292 };
    const place = `${device.url}?unit=1&to=5&replyUnit=any`;
    const options = { replyUnit: "any" };
    return { place, url: device.url, tags: 1, known: at, options, [Symbol.asyncDispose]: end };
  },
};

test.each(Object.keys(devices))(
  "init, check --online, test, run and status at the first attempt: %s",
  { timeout: 120_000 },
  async (name) => {
    using folder = temporaryFolder();
    await using service = await testService();
    await using device = await (devices[name] as () => Promise<Device>)(); // `name` is a key of `devices`
    const { input, at, value } = device.known;
    const file = folder.file("tagferry.yaml");
    writeFileSync(folder.file("password"), `${password}\n`, { mode: 0o600 });
    const environment = { STATE_DIRECTORY: folder.file("data") };
    const typed = async (...args: readonly string[]) => {
      const ended = await command([...args, "-c", file], { variables: environment });
      return { ...ended, seen: ended.stdout + ended.stderr };
    };
    const about = ["--name", "gw1", "--service", service.url, "--integration", integration];

    const init = await typed("init", "--yes", ...about, "--password-file", "password", "--source", device.place);

    expect(init, init.seen).toMatchObject({ status: 0 });
    expect(init.stdout).toContain(`1 source, ${device.tags} tag`);
    expect(init.stdout).toMatch(/^modbus reads unit1\.\S+ = -?\d/m);
    expect(parse(readFileSync(file, "utf8")).sources.modbus).toMatchObject({ url: device.url, ...device.options });

    const online = await typed("check", "--online");
    expect(online, online.seen).toMatchObject({ status: 0 });
    expect(online.stdout).toMatch(/^modbus: answers, \d+ ms\n {2}unit 1: (?:hr|ir|co|di):\d+\S* ?\S* is \S+$/m);

    const read = await typed("test", "--once");
    expect(read, read.seen).toMatchObject({ status: 0 });
    expect(read.seen).toContain(
      `${device.tags} tag${device.tags === 1 ? "" : "s"} of ${device.tags} with a good value`,
    );
    expect(read.stdout).toMatch(new RegExp(`${input} +${value} .*${at}`));

    const text = readFileSync(file, "utf8").replace("listen: 127.0.0.1:8421", "listen: 127.0.0.1:0");
    await using agent = await startAgent({ folder: folder.path, configuration: text, env: environment });
    await eventually(async () => {
      const { tags, upload } = await agent.status();
      return (
        tags.some((tag) => tag.input === input && tag.value === value) &&
        upload.backlogPoints === 0 &&
        upload.points > 0
      );
    }, 60_000);
    const status = (await command(["status", "--url", agent.page])).stdout;
    expect(status).toMatch(/modbus .*online/);
    expect(status).toContain(device.url);
  },
);
