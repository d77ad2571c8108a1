// Opens DuckDB from the folder `BENCH_OTHERS` that `install-others.sh` has filled.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

/** The part of `@duckdb/node-api` that the benches use. */
interface DuckDb {
  readonly DuckDBInstance: { create(path: string): Promise<DuckInstance> };
}
interface DuckInstance {
  connect(): Promise<DuckConnection>;
  closeSync(): void;
}
interface DuckConnection {
  run(sql: string): Promise<unknown>;
  runAndReadAll(sql: string): Promise<{ getRows(): unknown[][] }>;
  createAppender(table: string): Promise<DuckAppender>;
  closeSync(): void;
}
interface DuckAppender {
  appendInteger(value: number): void;
  appendBigInt(value: bigint): void;
  appendDouble(value: number): void;
  endRow(): void;
  closeSync(): void;
}

/** Undefined: `BENCH_OTHERS` is not set. */
export async function openDuckDb(path: string): Promise<DuckInstance | undefined> {
  const others = process.env["BENCH_OTHERS"];
  if (others === undefined) return undefined;
  const duckDb = createRequire(join(resolve(others), "package.json"))("@duckdb/node-api") as DuckDb;
  return duckDb.DuckDBInstance.create(path);
}
