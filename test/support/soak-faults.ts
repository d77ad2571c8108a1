// The faults of the soak test: one row per fault, each of which repairs itself.
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { type Fault, parseFault } from "../../src/service/config/fault.ts";
import { eventually } from "./eventually.ts";
import { patienceMs, type RestartableAgent } from "./restartable-agent.ts";
import type { TestService } from "./service.ts";
import type { SoakPlant } from "./soak-plant.ts";

export interface SoakWorld {
  readonly plant: SoakPlant;
  readonly agent: RestartableAgent;
  readonly service: TestService;
  /** The folder of the volume to fill; undefined: there is none. */
  readonly volume: string | undefined;
  readonly random: () => number;
  /** Resolves after 0.2 to 3 s. */
  readonly while: () => Promise<void>;
}

export interface SoakFault {
  readonly name: string;
  /** Faults of one part never overlap. */
  readonly part: "broker" | "modbus" | "opcua" | "service" | "agent" | "payload" | "disk";
  /** Whether the fault ends the agent's process. */
  readonly ends?: true;
  run(world: SoakWorld): Promise<void>;
}

export const soakFaults: readonly SoakFault[] = [
  {
    name: "agent killed",
    part: "agent",
    ends: true,
    async run(world) {
      await world.while();
      // Before the agent can store it: its values must be in the gap record.
      await world.plant.reply();
      await world.agent.kill();
      await world.while();
      await world.agent.start();
    },
  },
  {
    name: "agent stopped",
    part: "agent",
    ends: true,
    async run(world) {
      await world.while();
      await world.agent.stop();
      await world.while();
      await world.agent.start();
    },
  },
  {
    name: "agent reloaded",
    part: "agent",
    async run({ agent, ...world }) {
      await world.while();
      await agent.reload();
      await world.while();
      await agent.reload();
    },
  },
  {
    name: "broker killed",
    part: "broker",
    run: ({ plant, ...world }) =>
      plant.withBrokerSaved(async () => {
        await plant.broker.stop("SIGKILL");
        await world.while();
        await plant.broker.start();
      }),
  },
  {
    name: "broker restarted",
    part: "broker",
    run: ({ plant }) => plant.broker.restart("SIGTERM"),
  },
  network("broker cut", "broker", "brokerNetwork", "cut"),
  network("OPC UA cut", "opcua", "opcuaNetwork", "cut"),
  network("OPC UA silent", "opcua", "opcuaNetwork", "muteDevice"),
  {
    name: "OPC UA server restarted",
    part: "opcua",
    async run({ plant, random, ...world }) {
      if (random() < 0.5) plant.opcuaNetwork.cut();
      await plant.restartOpcua(world.while);
      plant.opcuaNetwork.restore();
    },
  },
  {
    name: "one unit silent",
    part: "modbus",
    async run({ plant, ...world }) {
      const unit = plant.modbus.unit(2);
      unit.silent = true;
      await world.while();
      unit.silent = false;
    },
  },
  {
    name: "one unit with exceptions",
    part: "modbus",
    async run({ plant, ...world }) {
      const unit = plant.modbus.unit(1);
      unit.exception = 4;
      await world.while();
      unit.exception = undefined;
    },
  },
  {
    name: "Modbus reset",
    part: "modbus",
    async run({ plant, ...world }) {
      plant.modbus.disconnect(true);
      await world.while();
      plant.modbus.disconnect();
    },
  },
  {
    name: "Modbus refused",
    part: "modbus",
    async run({ plant: { modbus }, ...world }) {
      const closed = modbus.listen(false);
      modbus.disconnect(true);
      await closed;
      await world.while();
      await modbus.listen(true);
    },
  },
  {
    name: "service refused",
    part: "service",
    async run({ service, ...world }) {
      await service.pause();
      await world.while();
      await service.resume();
    },
  },
  service("status=500"),
  service("status=429"),
  service("delay=15s"),
  service("cutBefore"),
  service("cutAfter"),
  service("garbage"),
  service("html"),
  service("partial=hostile"),
  {
    name: "hostile payloads",
    part: "payload",
    async run({ plant, random }) {
      const payloads = [
        "",
        "{",
        "null",
        '{"v":',
        '{"v":1e999}',
        '{"v":"\\u0000"}',
        "[".repeat(20_000),
        "\u0000\u001b[2J",
      ];
      for (const payload of payloads) await plant.publishRaw("hostile/value", payload);
      for (const payload of payloads) await plant.publishRaw("hall/t0", payload);
      for (let i = 0; i < 20; i++) {
        const bytes = Buffer.from(Array.from({ length: 1 + Math.floor(random() * 200) }, () => random() * 256));
        await plant.publishRaw("hall/t1", bytes);
        await plant.publishRaw("hostile/value", JSON.stringify({ v: Math.floor(random() * 1e6) }));
      }
      await plant.publishRaw(`hall/${"x".repeat(200)}`, '{"v":1}');
      await plant.publishRaw("hall/æ ø", '{"v":1}');
    },
  },
  {
    name: "disk full",
    part: "disk",
    async run({ volume, ...world }) {
      if (volume === undefined) return;
      await world.while();
      const others = join(volume, "others");
      fill(others);
      await world.while();
      rmSync(others);
    },
  },
  {
    // A segment's blocks are allocated when it is created. A full disk affects the agent when it needs another segment,
    // as each start does.
    name: "agent killed on a full disk",
    part: "agent",
    ends: true,
    async run({ volume, agent, ...world }) {
      if (volume === undefined) return;
      const others = join(volume, "at-start");
      const filling = setInterval(() => fill(others), 1);
      try {
        await eventually(async () => {
          await agent.kill();
          await agent.start();
          return await eventually(async () => (await agent.status()).buffer.degraded !== undefined, 10_000);
        }, patienceMs);
        await world.while();
      } finally {
        clearInterval(filling);
        rmSync(others);
      }
    },
  },
];

function network(
  name: string,
  part: "broker" | "opcua",
  which: "brokerNetwork" | "opcuaNetwork",
  how: "cut" | "muteDevice",
): SoakFault {
  return {
    name,
    part,
    async run({ plant, ...world }) {
      const proxy = plant[which];
      proxy[how]();
      await world.while();
      proxy.cut();
      proxy.restore();
    },
  };
}

function service(spec: string): SoakFault {
  return {
    name: `service ${spec}`,
    part: "service",
    async run(world) {
      world.service.setFaults([faultOf(spec)]);
      await world.while();
      await world.while();
      world.service.setFaults([]);
    },
  };
}

function faultOf(spec: string): Fault {
  const fault = parseFault(spec);
  if (typeof fault === "string") throw new Error(`${spec}: ${fault}`);
  return fault;
}

/** Fills the volume with a file of another program. */
function fill(path: string): void {
  const file = openSync(path, "a");
  try {
    for (const size of [2 ** 16, 4_096])
      try {
        while (writeSync(file, new Uint8Array(size).fill(1)) > 0);
      } catch {
        // The disk is full.
      }
  } finally {
    closeSync(file);
  }
}
