// Refused points counted by why they were refused.
import type { RejectLine } from "./reject-files.ts";

export interface RejectReason {
  /** JSON-RPC error or HTTP status; undefined: they could not be sent at all. */
  readonly code: number | undefined;
  readonly reason: string;
  readonly points: number;
  /** Points by Input ID. */
  readonly inputs: ReadonlyMap<string, number>;
  /** Times of the first and the last of the points, RFC 3339. */
  readonly earliest: string | undefined;
  readonly latest: string | undefined;
}

export interface RejectReasons {
  /** Most points first. */
  readonly reasons: readonly RejectReason[];
  readonly points: number;
  /** Lines that cannot be read. */
  readonly unreadable: number;
}

/** `lines`: as `RejectFiles` gives them. Rejects as they do. */
export async function countRejects(lines: AsyncIterable<RejectLine | undefined>): Promise<RejectReasons> {
  const groups = new Map<string, Group>();
  let points = 0;
  let unreadable = 0;
  for await (const line of lines) {
    if (!line) {
      unreadable++;
      continue;
    }
    points++;
    const reason = withoutTrace(line.reason);
    const key = `${line.code} ${reason}`;
    const group = groups.get(key) ?? newGroup(line, reason);
    groups.set(key, group);
    group.points++;
    group.inputs.set(line.input, (group.inputs.get(line.input) ?? 0) + 1);
    if (typeof line.time !== "string") continue;
    if (group.earliest === undefined || line.time < group.earliest) group.earliest = line.time;
    if (group.latest === undefined || line.time > group.latest) group.latest = line.time;
  }
  return { reasons: [...groups.values()].toSorted((a, b) => b.points - a.points), points, unreadable };
}

interface Group extends RejectReason {
  points: number;
  readonly inputs: Map<string, number>;
  earliest: string | undefined;
  latest: string | undefined;
}

function newGroup({ code }: RejectLine, reason: string): Group {
  return { code, reason, points: 0, inputs: new Map(), earliest: undefined, latest: undefined };
}

/** Each answer of the service has a trace of its own: the reason is the same all the same. */
function withoutTrace(reason: string): string {
  return reason.replace(/, trace [\w-]+/, "");
}
