// `tagferry buffer stat`: what a data directory holds, whether an agent runs on it or not.
import type { InspectedSegment } from "../../buffer/disk/inspector.ts";
import { formatByteSize } from "../../lib/byte-size.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { count } from "../terminal/figures.ts";
import { columns } from "../terminal/table.ts";
import { between, damageOf, inspectBuffer, inspectedSegments, lostIn, type OpenedBuffer } from "./inspect-buffer.ts";

/** Rejects with `BUFFER_MISSING`, `BUFFER_NEWER` or `BUFFER_OLDER`. Damage is shown and no failure: `verify` is for that. */
export async function bufferStat(
  directory: string,
  { json = false }: { readonly json?: boolean },
  io: Console,
): Promise<ExitStatus> {
  const opened = inspectBuffer(directory);
  const segments: InspectedSegment[] = [];
  for await (const segment of inspectedSegments(opened, io)) segments.push(segment);
  const totals = totalsOf(segments, opened.inspector.accounts?.leased ?? []);
  if (json) {
    const { folder, inspector } = opened;
    io.print(JSON.stringify({ folder, ...totals, accounts: inspector.accounts, segments }, undefined, 2));
  } else for (const line of report(opened, segments, totals)) io.print(line);
  return exitStatus.done;
}

/** `leased`: points of dropped segments that an agent has in a request. */
function totalsOf(segments: readonly InspectedSegment[], leased: readonly { readonly points: number }[]) {
  const sum = (of: (segment: InspectedSegment) => number) => segments.reduce((total, each) => total + of(each), 0);
  return {
    bytes: sum(({ bytes }) => bytes),
    points: sum(({ points }) => points),
    unsettledPoints: leased.reduce(
      (total, each) => total + each.points,
      sum(({ unsettledPoints }) => unsettledPoints),
    ),
    lostPoints: sum(lostIn),
    earliest: least(segments.map(({ earliest }) => earliest)),
    latest: greatest(segments.map(({ latest }) => latest)),
  };
}

function report(
  { folder, inspector }: OpenedBuffer,
  segments: readonly InspectedSegment[],
  totals: ReturnType<typeof totalsOf>,
): readonly string[] {
  const { accounts } = inspector;
  const { bytes, points, unsettledPoints, earliest, latest } = totals;
  const damage = segments.flatMap(damageOf);
  return [
    folder,
    ...(accounts ? [`of integration ${accounts.integration}`] : []),
    `${count(points, "point")} in ${count(segments.length, "segment")} (${formatByteSize(bytes)}), ${count(unsettledPoints, "point")} to deliver${between(earliest, latest)}`,
    ...(accounts
      ? [
          `since it was created: ${count(accounts.settledPoints, "point")} delivered, ${count(accounts.refusedPoints, "point")} refused, ${count(accounts.duplicatePoints, "duplicate")}, ${count(accounts.collidedPoints, "point")} moved on by 1 µs`,
          ...accounts.losses
            .filter((loss) => loss.points > 0)
            .flatMap(({ reason, points: lost, from, to, intervals }) => [
              `lost: ${count(lost, "point")}, ${reason}${between(from, to)}`,
              ...(intervals.length > 1
                ? intervals
                    .filter((each) => each.points > 0)
                    .map((each) => `  ${count(each.points, "point")}${between(each.from, each.to)}`)
                : []),
            ]),
          ...accounts.leased.map(
            ({ reason, points: leased, from, to }) =>
              `on their way to the service, and not on disk any more (${reason}): ${count(leased, "point")}${between(from, to)}`,
          ),
        ]
      : ["the accounts are damaged or not there: what is delivered cannot be told from what is not"]),
    "",
    ...columns(
      segments.map((segment) => [
        segment.name,
        segment.sealed ? segment.kind : `${segment.kind}, open`,
        formatByteSize(segment.bytes),
        count(segment.points, "point"),
        `${count(segment.unsettledPoints, "point")} to deliver`,
        count(segment.inputs, "input"),
        segment.damage.length > 0 || segment.error !== undefined ? "damaged" : "",
      ]),
    ),
    ...(damage.length > 0 ? ["", ...damage] : []),
  ];
}

function least(values: readonly (number | undefined)[]): number | undefined {
  return values.reduce((a, b) => (a === undefined || (b !== undefined && b < a) ? b : a), undefined);
}

function greatest(values: readonly (number | undefined)[]): number | undefined {
  return values.reduce((a, b) => (a === undefined || (b !== undefined && b > a) ? b : a), undefined);
}
