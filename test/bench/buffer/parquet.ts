// The size of a column in Parquet with zstd, as DuckDB writes it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDuckDb } from "./duck-db.ts";

/** Bits a value in row groups of `rows`, the smallest of both versions of the format. Undefined: no DuckDB. */
export async function parquetBits(values: Float64Array, rows: number): Promise<number | undefined> {
  const instance = await openDuckDb(":memory:");
  if (!instance) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "tagferry-bench-"));
  const connection = await instance.connect();
  try {
    await connection.run("CREATE TABLE point (value DOUBLE)");
    const appender = await connection.createAppender("point");
    for (const value of values) {
      appender.appendDouble(value);
      appender.endRow();
    }
    appender.closeSync();
    const sizes: number[] = [];
    for (const version of ["V1", "V2"]) {
      const path = join(folder, version);
      await connection.run(
        `COPY point TO '${path}' (FORMAT parquet, PARQUET_VERSION ${version}, COMPRESSION zstd, COMPRESSION_LEVEL 19, ROW_GROUP_SIZE ${rows})`,
      );
      // Without the footer.
      const sum = await connection.runAndReadAll(
        `SELECT sum(total_compressed_size)::DOUBLE FROM parquet_metadata('${path}')`,
      );
      sizes.push(Number(sum.getRows()[0]?.[0]));
    }
    return (Math.min(...sizes) * 8) / values.length;
  } finally {
    connection.closeSync();
    instance.closeSync();
    rmSync(folder, { recursive: true });
  }
}
