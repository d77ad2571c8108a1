// `tagferry service`: the local service, until a signal stops it.
import { openLog } from "../../agent/log/log.ts";
import { metricsRegistry } from "../../agent/process/metrics.ts";
import { lineIn } from "../../config/files/environment.ts";
import { isAgentError } from "../../core/errors.ts";
import { whenAborted } from "../../lib/flow/abort.ts";
import { systemRuntime } from "../../lib/time/clock.ts";
import { type LocalServiceOptions, optionsFromFlags, type ServiceFlags } from "../../service/config/options.ts";
import { openService } from "../../service/service.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus, surviveDefects } from "../terminal/exit-status.ts";

interface TypedFlags extends ServiceFlags {
  readonly passwordFile?: string;
  readonly clientSecretFile?: string;
}

/** Resolves with `usage` for an invalid flag, `config` for an invalid file, and `failed` if the store has ended. */
export async function service(flags: TypedFlags, io: Console): Promise<ExitStatus> {
  let options: LocalServiceOptions;
  try {
    options = await optionsFromFlags({
      ...flags,
      password: flags.password ?? (await secretIn("--password-file", flags.passwordFile)),
      clientSecret: flags.clientSecret ?? (await secretIn("--client-secret-file", flags.clientSecretFile)),
    });
  } catch (error) {
    if (!isAgentError(error, "CONFIG_INVALID")) throw error;
    io.complain(`${error.message}\n(tagferry service --help lists the options)`);
    return flags.config === undefined ? exitStatus.usage : exitStatus.config;
  }
  const log = await openLog({ level: "info", descriptor: 2, pretty: io.interactive, fields: {} });
  using _guard = surviveDefects(log.child({ part: "service" }));
  try {
    await using running = await openService(options, systemRuntime(log, metricsRegistry()), io.signal);
    io.print(`service   ${running.url}\ntimeline  ${running.pageUrl}`);
    const failure = await Promise.race([whenAborted(io.signal), running.failed]);
    if (failure instanceof Error) return exitStatus.failed;
  } finally {
    log.flush();
  }
  return exitStatus.done;
}

/** All users of the machine can see arguments. */
async function secretIn(flag: string, file: string | undefined): Promise<string | undefined> {
  return file === undefined ? undefined : await lineIn(file, flag, "CONFIG_INVALID");
}
