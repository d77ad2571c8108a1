// A bus with duplicated replies and a second master, over every transport. The same disturbance makes the bare library
// return wrong values. A run with a million values:
// `TAGFERRY_PEERS=1 TAGFERRY_SHARED_BUS=1000000 npx vitest run --config test/vitest.config.ts
// test/integration/modbus-shared-bus`
import modbusSerial from "modbus-serial";
import { expect, test } from "vitest";
import { type Disturbances, disturbedTcp, wordOf } from "../support/modbus-disturbed-bus.ts";
import { pollSharedBus, transports } from "../support/modbus-shared-bus.ts";
import { seed } from "../support/property.ts";
import { seeded } from "../support/runtime.ts";

const values = Number(process.env.TAGFERRY_SHARED_BUS ?? 6_000);
/** Buses in parallel, for each transport and disturbance. */
const buses = Math.min(60, Math.max(1, Math.round(values / 3_000)));
const timeoutMs = 120_000 + values * 20;

const disturbances = {
  "replies that come again 20 ms later": { repeatMs: 20 },
  "another master that reads as much": { foreign: 0.2, foreignCounts: [2, 4] },
  "both, and requests that are lost": { repeatMs: 20, foreign: 0.2, foreignCounts: [2, 4], lost: 0.1 },
} as const satisfies Record<string, Disturbances>;

const cases = transports.flatMap((transport) =>
  Object.entries(disturbances).map(([name, each]) => [name, transport, each] as const),
);

test.concurrent.each(cases)(
  `%s give no wrong value over %s, seed ${seed}`,
  async (_name, transport, each) => {
    const share = Math.ceil(values / cases.length / buses);
    const signal = AbortSignal.timeout(timeoutMs);
    const polled = await Promise.all(
      Array.from({ length: buses }, (_, i) => pollSharedBus(transport, each, share, seed + i, signal)),
    );

    expect(polled.flatMap(({ wrong }) => wrong)).toEqual([]);
    const right = polled.reduce((sum, one) => sum + one.right, 0);
    expect(right).toBeGreaterThanOrEqual(share * buses);
    // On transports without transaction IDs the driver detects the disturbance and reports it.
    if (transport === "tcp" || transport === "udp") return;
    const said = polled.flatMap(({ warnings }) => warnings).join("\n");
    const logged = polled.reduce((sum, one) => sum + one.logged, 0);
    expect(logged).toBeGreaterThan(0);
    if ("repeatMs" in each) expect(said).toContain("replies come twice");
    if ("foreign" in each) expect(said).toContain("another master reads on this bus");
  },
  timeoutMs + 10_000,
);

test.each(Object.entries(disturbances))("%s give the library alone wrong values", async (_name, each) => {
  await using server = await disturbedTcp("rtu", each, seeded(seed));
  const library = new modbusSerial.default();
  await library.connectTelnet("127.0.0.1", { port: server.port });
  library.setTimeout(400);
  let wrong = 0;
  for (let i = 0; i < 400 && wrong === 0; i++) {
    library.setID(1 + (i % 2));
    const start = (i % 8) * 40;
    const result = await library.readHoldingRegisters(start, 2).catch(() => undefined);
    if (result && result.data[0] !== wordOf(1 + (i % 2), start)) wrong++;
  }
  library.destroy(() => {});

  expect(wrong).toBeGreaterThan(0);
});
