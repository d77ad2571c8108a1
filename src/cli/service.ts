// `tagferry service`: the local service, until a signal ends it.
import { openLog } from "../agent/log.ts";
import { metricsRegistry } from "../agent/metrics.ts";
import { systemRuntime } from "../agent/runtime.ts";
import { optionsFromFlags, type ServiceFlags } from "../service/flags.ts";
import { openService } from "../service/service.ts";
import { type Console, stopped } from "./console.ts";
import { type ExitStatus, exitStatus } from "./exit-status.ts";
import { surviveDefects } from "./survive-defects.ts";

export async function service(flags: ServiceFlags, io: Console): Promise<ExitStatus> {
  const options = await optionsFromFlags(flags);
  const log = await openLog({ level: "info", descriptor: 2, pretty: io.interactive, fields: { part: "service" } });
  using _guard = surviveDefects(log);
  try {
    await using running = await openService(options, systemRuntime(log, metricsRegistry()), io.signal);
    io.print(`service   ${running.url}\ntimeline  ${running.pageUrl}`);
    await stopped(io.signal);
  } finally {
    log.flush();
  }
  return exitStatus.done;
}
