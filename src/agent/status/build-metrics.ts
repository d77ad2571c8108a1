// Which program and which configuration run, measured when metrics are read.
import type { MetricDeclaration } from "../../core/runtime.ts";
import type { MetricsRegistry } from "../process/metrics.ts";
import type { ConfigStatus } from "./status.ts";

const metrics = {
  build: {
    name: "build_info",
    help: "Always 1; the labels name the running program",
    labels: ["version", "node", "arch"],
  },
  config: {
    name: "config_info",
    help: "Always 1; the first 12 digits of the SHA-256 of the configuration in effect, with its includes and tables",
    labels: ["checksum"],
  },
  loaded: {
    name: "config_loaded_timestamp_seconds",
    help: "Time of the start or of the last successful reload, in seconds since 1970",
  },
  reloaded: { name: "config_last_reload_successful", help: "0 after a reload that failed, else 1" },
  restart: {
    name: "config_restart_needed",
    help: "1 while the configuration has changes that take effect only after a restart, else 0",
  },
} as const satisfies Record<string, MetricDeclaration>;

export interface BuildParts {
  readonly version: string;
  readonly config: () => ConfigStatus;
}

export function measureBuild(registry: MetricsRegistry, { version, config }: BuildParts): void {
  registry.gauge(metrics.build).set(1, { version, node: process.version, arch: process.arch });
  const info = registry.gauge(metrics.config);
  const loaded = registry.gauge(metrics.loaded);
  const reloaded = registry.gauge(metrics.reloaded);
  const restart = registry.gauge(metrics.restart);
  registry.beforeText(() => {
    const { checksum, loadedAt, failedReload, needRestart } = config();
    info.setOnly(1, { checksum });
    loaded.set(loadedAt / 1e6);
    reloaded.set(failedReload ? 0 : 1);
    restart.set(needRestart.length > 0 ? 1 : 0);
  });
}
