// `tagferry buffer verify`: reads every byte of a buffer and tells what of it is damaged.
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { count } from "../terminal/figures.ts";
import { damageOf, inspectBuffer, inspectedSegments, lostIn } from "./inspect-buffer.ts";

/** Resolves with `failed` where anything is damaged. Rejects with `BUFFER_MISSING`, `BUFFER_NEWER` or `BUFFER_OLDER`. */
export async function bufferVerify(
  directory: string,
  { json = false }: { readonly json?: boolean },
  io: Console,
): Promise<ExitStatus> {
  const opened = inspectBuffer(directory);
  const damage: string[] = [];
  let segments = 0;
  let points = 0;
  let lost = 0;
  let unreadable = 0;
  for await (const segment of inspectedSegments(opened, io)) {
    segments++;
    points += segment.points;
    lost += lostIn(segment);
    if (segment.error !== undefined) unreadable++;
    damage.push(...damageOf(segment));
    if (segment.kind === "damaged header") damage.push(`${segment.name}: its header is damaged, its records are read`);
  }
  if (!opened.inspector.accounts && segments > 0)
    damage.push("the accounts are damaged or not there: what was delivered will be sent once more");
  const ok = damage.length === 0;
  if (json) io.print(JSON.stringify({ ok, segments, unreadable, points, lostPoints: lost, damage }, undefined, 2));
  else {
    for (const line of damage) io.print(line);
    const good = `${count(points, "point")} in ${count(segments, "segment")} can be read`;
    const bad = `${count(lost, "point")} lost${unreadable > 0 ? ` and what is in ${count(unreadable, "unreadable segment")}` : ""}`;
    io.print(`${opened.folder}: ${good}, ${ok ? "no damage" : bad}`);
  }
  return ok ? exitStatus.done : exitStatus.failed;
}
