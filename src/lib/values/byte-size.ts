// `2GiB`, `512MiB`, `64kB`: amounts of bytes as people write them.

const unitBytes: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

/** Bytes, or undefined if `text` is invalid. A unit is required, except for `0`. */
export function parseByteSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([kKMGT]?i?B)?$/.exec(text.trim());
  if (!match) return undefined;
  if (match[2] === undefined) return Number(match[1]) === 0 ? 0 : undefined;
  const unit = unitBytes[match[2]];
  return unit === undefined ? undefined : Math.round(Number(match[1]) * unit);
}

/** For people, in binary units: 9_437_184 → `9 MiB`. */
export function formatByteSize(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
