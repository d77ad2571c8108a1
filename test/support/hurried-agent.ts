// The agent as a program with a clock that runs four times as fast.
import { openLog } from "../../src/agent/log/log.ts";
import { metricsRegistry } from "../../src/agent/process/metrics.ts";
import { serve } from "../../src/cli/run/serve.ts";
import { processConsole } from "../../src/cli/terminal/console.ts";
import { loadConfig } from "../../src/config/load.ts";
import { systemRuntime } from "../../src/lib/time/clock.ts";
import { hurriedClock } from "./hurried-clock.ts";

const file = process.argv.at(-1) ?? "";
using io = processConsole();
const config = await loadConfig(file, io.environment);
const log = await openLog({ level: config.log.level, descriptor: 2, pretty: false, fields: {} });
const metrics = metricsRegistry();
await serve({ file, config, log, metrics, agent: {} }, systemRuntime(log, metrics, hurriedClock(4)), io);
log.flush();
process.exit();
