// Blocks that were leased when their segment was dropped. Their points are in a request, or waiting for one, so whether they
// are lost shows when the block comes back: what is settled was delivered, what is released is gone.
import type { Accounts } from "../accounts/accounts.ts";
import type { LeasedLoss } from "../accounts/buffer-state.ts";
import type { LossReason } from "../accounts/loss-ledger.ts";
import { type RemovedRange, RemovedRanges } from "../accounts/removed-ranges.ts";
import type { SeriesOut } from "./series-out.ts";

/** Earliest and latest time of the points that a block holds of a series, by its place in the segment's dictionary. */
export type SeriesTimes = ReadonlyMap<number, { readonly from: number; readonly to: number }>;

interface DroppedBlock {
  readonly reason: LossReason;
  readonly series: SeriesOut;
  readonly times: SeriesTimes;
  /** Sequence numbers of its segment. */
  readonly first: number;
  readonly end: number;
}

export class DroppedBlocks {
  readonly #accounts: Accounts;
  readonly #blocks = new Map<number, DroppedBlock>();

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
  }

  /** Points that are still leased. */
  get points(): number {
    let points = 0;
    for (const { series } of this.#blocks.values()) points += series.points;
    return points;
  }

  add(id: number, block: DroppedBlock): void {
    this.#blocks.set(id, block);
  }

  /** Counts what the service has of a block, or refused. False: it is none of these. */
  settle(id: number, inputs: readonly number[], refused: number): boolean {
    const block = this.#blocks.get(id);
    if (!block) return false;
    let points = 0;
    for (const part of block.series.settle(inputs)) points += part.points;
    this.#accounts.refused += Math.min(refused, points);
    this.#accounts.settled += points - Math.min(refused, points);
    if (block.series.count === 0) this.#blocks.delete(id);
    return true;
  }

  /** What is left of a block is lost. False: it is none of these. */
  release(id: number): boolean {
    const block = this.#blocks.get(id);
    if (!block) return false;
    this.#blocks.delete(id);
    const loss = lossOf(block);
    this.#accounts.losses.add(block.reason, loss);
    this.#accounts.removed.lose(block.first, block.end, loss.points, block.reason);
    return true;
  }

  releaseAll(): void {
    for (const id of this.#blocks.keys()) this.release(id);
  }

  /** What would be lost with the process, for the state, and what is removed if it is. */
  state(): { readonly leased: readonly LeasedLoss[]; readonly removed: readonly RemovedRange[] } {
    const removed = new RemovedRanges(this.#accounts.removed.list());
    const leased = [...this.#blocks.values()].map((block) => {
      const loss = lossOf(block);
      removed.lose(block.first, block.end, loss.points, block.reason);
      return { reason: block.reason, ...loss };
    });
    return { leased, removed: removed.list() };
  }
}

function lossOf({ series, times }: DroppedBlock) {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { place } of series.parts()) {
    from = Math.min(from, times.get(place)?.from ?? from);
    to = Math.max(to, times.get(place)?.to ?? to);
  }
  const isKnown = Number.isFinite(from) && Number.isFinite(to);
  return { points: series.points, from: isKnown ? from : undefined, to: isKnown ? to : undefined };
}
