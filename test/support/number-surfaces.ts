// Everything that reports losses, backlog and deliveries of a running agent, in one shape for comparison.
import type { Status } from "../../src/agent/status/status.ts";
import type { AgentProcess } from "./agent-process.ts";
import { command } from "./command.ts";

export interface Numbers {
  readonly lost: Readonly<Record<string, number>>;
  readonly unsettled: number;
  readonly settled: number;
  readonly refused: number;
}

export interface Surfaces {
  /** The status, which the page shows as well. */
  readonly status: Numbers & { readonly appended: number; readonly backlog: number };
  readonly bufferStat: Numbers;
  readonly metrics: Pick<Numbers, "lost" | "unsettled"> & { readonly settledSinceStart: number };
  /** The number of points in rows of the gap record. */
  readonly gaps: number;
}

const byReason = (losses: Status["buffer"]["losses"]) =>
  Object.fromEntries(losses.filter(({ points }) => points > 0).map(({ reason, points }) => [reason, points]));

export async function surfacesOf(agent: AgentProcess, dataDir: string): Promise<Surfaces> {
  const { buffer, upload } = await agent.status();
  const text = await (await fetch(new URL("/metrics", agent.page))).text();
  const metric = (name: string) => Number(new RegExp(`^tagferry_${name} (\\S+)$`, "m").exec(text)?.[1]);
  const lost = [...text.matchAll(/^tagferry_buffer_lost_points_total\{reason="(\w+)"\} (\d+)$/gm)];
  const { gaps } = (await (await fetch(new URL("/api/gaps?since=30d&most=5000", agent.page))).json()) as {
    gaps: readonly { cause: string; points?: number }[];
  };
  const { stdout } = await command(["buffer", "stat", dataDir, "--json"]);
  const stat = JSON.parse(stdout) as {
    unsettledPoints: number;
    accounts: { settledPoints: number; refusedPoints: number; losses: Status["buffer"]["losses"] };
  };
  return {
    status: {
      lost: byReason(buffer.losses),
      unsettled: buffer.unsettledPoints,
      settled: buffer.settledPoints,
      refused: buffer.refusedPoints,
      appended: buffer.appendedPoints,
      backlog: upload.backlogPoints,
    },
    bufferStat: {
      lost: byReason(stat.accounts.losses),
      unsettled: stat.unsettledPoints,
      settled: stat.accounts.settledPoints,
      refused: stat.accounts.refusedPoints,
    },
    metrics: {
      lost: Object.fromEntries(
        lost.map(([, reason = "", points]) => [reason, Number(points)]).filter(([, n]) => n !== 0),
      ),
      unsettled: metric("buffer_unsettled_points"),
      settledSinceStart: metric("buffer_settled_points_total"),
    },
    gaps: gaps.filter(({ cause }) => cause === "buffer").reduce((sum, { points = 0 }) => sum + points, 0),
  };
}

export const total = (lost: Numbers["lost"]) => Object.values(lost).reduce((sum, points) => sum + points, 0);
