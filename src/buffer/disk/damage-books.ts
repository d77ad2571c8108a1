// Counts points that were stored and cannot be read any more, each once, and keeps a copy of the bytes.
import type { Accounts } from "./accounts.ts";
import type { Disk } from "./disk.ts";
import type { Notes } from "./note.ts";
import { keepAside } from "./quarantine.ts";
import type { Segment } from "./segment.ts";
import type { Damage } from "./segment-index.ts";

export interface DamageBooks {
  readonly disk: Disk;
  readonly folder: string;
  readonly accounts: Accounts;
  readonly note: Notes;
}

/** These points are lost: from now on they are done with. Says whether that was news. */
export function countDamage(
  books: DamageBooks,
  segment: Segment,
  { from, to, earliest, latest }: Omit<Damage, "offset" | "bytes">,
): boolean {
  // Where single series of the stretch are settled, how many of its points are lost shows when all else is settled.
  if (segment.settled.touchesSeries(from, to) || segment.taken.touchesSeries(from, to)) return false;
  const points = to - from - segment.settled.whole.countIn(from, to);
  if (points <= 0) return false;
  segment.settled.addWhole(from, to);
  segment.taken.addWhole(from, to);
  books.accounts.losses.add("damaged", { points, from: earliest, to: latest, first: from, end: to });
  copyDamage(books, segment, from);
  books.note(
    "error",
    { part: "buffer", segment: segment.name, points },
    "points are damaged on disk and were set aside",
  );
  return true;
}

/** Nothing in a sealed segment is free and nothing of it is out: what is left of it cannot be read. Says whether anything was. */
export function writeOffRest(books: DamageBooks, segment: Segment): boolean {
  if (!segment.sealed || segment.blocksOut > 0 || segment.unsettledPoints <= 0) return false;
  const points = segment.unsettledPoints;
  books.accounts.losses.add("damaged", { points, from: segment.earliest, to: segment.latest });
  segment.settleAll();
  books.note(
    "error",
    { part: "buffer", segment: segment.name, points },
    "points are damaged on disk and were set aside",
  );
  return true;
}

function copyDamage({ disk, folder }: DamageBooks, segment: Segment, sequence: number): void {
  const damage = segment.index?.damage.find(({ from }) => from === sequence);
  if (!damage) return;
  try {
    const file = disk.open(segment.path, "read");
    try {
      const bytes = new Uint8Array(Math.min(damage.bytes, 2 ** 19));
      const count = file.read(bytes, damage.offset);
      keepAside(disk, folder, `${segment.name}-${damage.offset}.bin`, bytes.subarray(0, count));
    } finally {
      file.close();
    }
  } catch {
    // The copy is a courtesy.
  }
}
