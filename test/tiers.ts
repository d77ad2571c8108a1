// Which files of the suite run. There are three tiers:
//
//   quick  `npm test`            every file but the long ones below and the peer tests
//   full   `npm cit`, `npx vitest`, `npm run test:full`   every file but the peer tests
//   peers  `npm run test:peers`  the peer tests: they need brokers, servers and tools that npm does not bring

/**
 * Files that took more than 2.5 s each in the run of 2026-11-23 on two cores, 355 of the 533 s of all files.
 * `.ci/run` ends with the slowest files that are missing here.
 */
export const longFiles: readonly string[] = [
  "test/e2e/agent-over-tls.test.ts",
  "test/e2e/bad-input.test.ts",
  "test/e2e/cli-browse.test.ts",
  "test/e2e/cli-first-five-minutes.test.ts",
  "test/e2e/cli-fleet.test.ts",
  "test/e2e/cli-gaps.test.ts",
  "test/e2e/cli-init-unattended.test.ts",
  "test/e2e/cli-init.test.ts",
  "test/e2e/cli-read.test.ts",
  "test/e2e/cli-rejects.test.ts",
  "test/e2e/cli-reload.test.ts",
  "test/e2e/cli-signals.test.ts",
  "test/e2e/cli-test.test.ts",
  "test/e2e/discover-while-polling.test.ts",
  "test/e2e/kill.test.ts",
  "test/e2e/opcua-first-contact.test.ts",
  "test/e2e/outage.test.ts",
  "test/e2e/service-manager.test.ts",
  "test/e2e/signals.test.ts",
  "test/integration/buffer-kill.test.ts",
  "test/integration/demo/devices.test.ts",
  "test/integration/modbus-adversary.test.ts",
  "test/integration/modbus-bus.test.ts",
  "test/integration/modbus-close-after-poll.test.ts",
  "test/integration/modbus-commissioning.test.ts",
  "test/integration/modbus-recovery.test.ts",
  "test/integration/modbus-tcp.test.ts",
  "test/integration/discover/opcua.test.ts",
  "test/integration/discover/other-protocols.test.ts",
  "test/integration/discover/requests.test.ts",
  "test/integration/mqtt/back-pressure.test.ts",
  "test/integration/mqtt/connection.test.ts",
  "test/integration/opcua-credentials.test.ts",
  "test/integration/opcua-history.test.ts",
  "test/integration/opcua-interruptions.test.ts",
  "test/integration/opcua-killed.test.ts",
  "test/integration/opcua-reconnect.test.ts",
  "test/integration/opcua-servers.test.ts",
  "test/integration/opcua-takeover.test.ts",
  "test/integration/opcua.test.ts",
  "test/integration/recipes.test.ts",
  "test/integration/service-readers.test.ts",
  "test/integration/upload-crashes.test.ts",
  "test/integration/upload-credentials.test.ts",
  "test/integration/upload-faults.test.ts",
  "test/integration/upload-signal-watch.test.ts",
  "test/integration/upload-rejects.test.ts",
  "test/integration/upload.test.ts",
  "test/unit/agent/agent.test.ts",
  "test/unit/buffer/disk/bit-flips.test.ts",
  "test/unit/buffer/disk/faults.test.ts",
  "test/unit/upload/always-refused.test.ts",
  "test/unit/upload/packer.test.ts",
  "test/unit/upload/refused-inputs.test.ts",
];

export type Tier = "quick" | "full" | "peers";

/**
 * The tier that a run with these environment variables belongs to. npm sets `npm_command` to `test` for `npm test` and to
 * `install-ci-test` for `npm cit`, whose test script is the same. Every unknown way to start a run is the full tier.
 */
export function tierOf(variables: Readonly<Record<string, string | undefined>>): Tier {
  if (variables["TAGFERRY_PEERS"] !== undefined) return "peers";
  return variables["npm_lifecycle_event"] === "test" && variables["npm_command"] === "test" ? "quick" : "full";
}
