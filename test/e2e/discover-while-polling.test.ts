// The page looks at Modbus devices that accept one connection, while the agent polls them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { integration, password } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

interface Node {
  readonly key: string;
  readonly address: string;
  readonly value?: unknown;
}

test.for(["refuses", "evicts", "ignores"] as const)(
  "a device that %s a second connection is searched, its values are followed, and polling goes on",
  async (single) => {
    using folder = temporaryFolder();
    await using device = await modbusDevice();
    device.single = single;
    device.unit(7).set("hr", 0, [231]);
    device.unit(7).set("hr", 40, [50]);
    await using agent = await startAgent({
      folder: folder.path,
      configuration: `version: 1
agent: { name: gw, dataDir: ${join(folder.path, "data")}, ownSignals: off }
service: { url: "http://127.0.0.1:1/v1", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources:
  meter:
    type: modbus
    url: ${device.url}
    timeout: 10s
    devices:
      - { unit: 7, tags: [{ input: meter.voltage, at: "hr:0 u16", every: 100ms }] }
`,
    });
    const token = readFileSync(join(folder.path, "data/control.token"), "utf8").trim();
    const ask = async (action: string, body: object) => {
      const response = await fetch(new URL(`/api/discover/${action}`, agent.page), {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
      });
      return JSON.parse(await response.text());
    };
    const readings = async () => (await agent.status()).tags[0]?.readings ?? 0;
    await eventually(async () => (await readings()) > 0);

    const open = async () => {
      const { look: opened, reason } = await ask("open", { source: "meter" });
      expect(reason).toBeUndefined();
      return opened;
    };
    let look: unknown = await open();
    const found: Node = await eventually(async () => {
      const { nodes, busy } = await ask("list", { look });
      const node = nodes.find(({ address }: Node) => address === "hr:40 u16");
      if (node !== undefined || busy === true) return node;
      // On a busy machine an answer may have come too late for the search.
      await ask("close", { look });
      look = await open();
    });
    device.unit(7).set("hr", 40, [51]);
    await eventually(async () => (await ask("values", { look, keys: [found.key] })).values?.[found.key] === 51);
    const before = await readings();
    await eventually(async () => (await readings()) > before);

    const { sources, tags } = await agent.status();
    expect(sources[0]).toMatchObject({ state: "online", reconnects: 0 });
    expect(tags[0]).toMatchObject({ failures: 0, value: 231 });
    expect(device.accepted).toBe(1);
  },
);
