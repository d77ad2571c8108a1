// The configuration as the program uses it: checked, with every default, every reference replaced and every tag expanded.
import type { z } from "zod";
import type { BufferOptions } from "../buffer/disk/options.ts";
import type { Secret } from "../core/secret.ts";
import type { Driver, DriverTag } from "../core/source.ts";
import type { ListenAddress } from "../lib/fields.ts";
import type { TagRule } from "../mapping/options.ts";
import type { ServiceOptions } from "../upload/client/options.ts";
import type { ConfigIssue } from "./issue.ts";

export const logLevels = ["debug", "info", "warn", "error"] as const;
type LogLevel = (typeof logLevels)[number];

export interface Config {
  /** Absolute path it was read from, for commands that are proposed to people. */
  readonly file?: string;
  readonly agent: {
    readonly name: string;
    /** Absolute path. */
    readonly dataDir: string;
    /** What becomes of readings while the clock is not set. */
    readonly unsyncedClock: "hold" | "write";
    /** Milliseconds between measurements. */
    readonly ownSignals: "off" | { readonly every: number };
  };
  readonly service: ServiceOptions;
  readonly buffer: BufferOptions;
  readonly http: {
    readonly listen: ListenAddress;
    /** Host names that the status page answers to beside its address; without port. */
    readonly allowedHosts: readonly string[];
    /** Whoever sends it may ask for a change. */
    readonly token?: Secret | undefined;
  };
  readonly log: { readonly level: LogLevel };
  /** In the order of the file. */
  readonly sources: readonly ConfiguredSource[];
  /** What is allowed but hardly meant. */
  readonly warnings: readonly ConfigIssue[];
}

/** One entry of `sources`. Templates, devices, defaults and variables are gone: each tag stands for itself. */
export interface ConfiguredSource {
  readonly name: string;
  readonly driver: Driver;
  /** As `driver.schema` gave them. */
  readonly options: z.output<z.ZodObject>;
  /** `TagId` is the index in here. */
  readonly tags: readonly DriverTag<z.ZodObject>[];
  /** What becomes of each tag's readings; the same index. */
  readonly rules: readonly TagRule[];
}
