// Compiles the peers that are separate programs, for `.ci/install-peers`. Programs in the cache are not compiled again.
import { clarifyGoAutomation, clarifyGoProgram, clarifyGoSuite } from "./clarify-go.ts";
import { gopcuaProgram } from "./gopcua.ts";
import { miloProgram } from "./milo.ts";
import { natsServerProgram } from "./nats-servers.ts";
import { open62541Program } from "./open62541.ts";
import { otelCollectorProgram } from "./otel-collector.ts";

const programs = {
  open62541: open62541Program,
  gopcua: gopcuaProgram,
  "nats-server": natsServerProgram,
  "OpenTelemetry collector": otelCollectorProgram,
  milo: miloProgram,
  "clarify-go": clarifyGoProgram,
  "clarify-go's suite": clarifyGoSuite,
  "clarify-go's example": clarifyGoAutomation,
};
for (const [name, build] of Object.entries(programs)) {
  const start = performance.now();
  try {
    await build();
    console.log(`${name}: ready after ${Math.round((performance.now() - start) / 1_000)} s`);
  } catch (error) {
    console.error(`${name}: cannot be built: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
