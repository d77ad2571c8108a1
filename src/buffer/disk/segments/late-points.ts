// Late points, which may replace stored ones: separates them from points in order, and keeps them behind what they replace.
//
// One mark per input has the latest time and its newest value:
//
//   time > mark   in order: no stored point has this time. Either lane may deliver it.
//   time ≤ mark   late: it may replace a stored value, so it is delivered first in, first out, in a record of its own.
//
// Constant time and 17 bytes per input, however many points share a time. After a start the marks are unknown: the
// floor, which is the latest unsettled time, replaces all of them.
import { copied } from "../files/bytes.ts";
import { keepSameTime, type PointColumns } from "../format/input-table.ts";
import { KeptTimes } from "./kept-times.ts";

export interface Admission {
  /** Points to store. They are at the start of the group, those in order before the late ones. */
  readonly count: number;
  readonly inOrder: number;
  /** Points that repeat the newest value at the newest time of their input. */
  readonly duplicates: number;
  /** Points with the newest time of their input and another value, and points shifted by `sameTime: keep`. */
  readonly collided: number;
}

/** The marks of all inputs. */
export class InputMarks {
  readonly kept: KeptTimes;
  /** Points of any input up to this time are late. */
  floor: number;
  #times = new Float64Array(64).fill(Number.NEGATIVE_INFINITY);
  #values = new Float64Array(64);
  /** 1: `#values` is the stored value at `#times`. */
  #isKnown = new Uint8Array(64);
  #lateInputs = new Uint32Array(256);
  #lateTimes = new Float64Array(256);
  #lateValues = new Float64Array(256);
  #late = 0;

  constructor(floor = Number.NEGATIVE_INFINITY, kept = new KeptTimes()) {
    this.floor = floor;
    this.kept = kept;
  }

  /**
   * Drops repeats, shifts points of inputs with `sameTime: keep`, and moves late points behind those in order. Changes
   * `group` in place. Call `undo` if the group was not stored completely.
   */
  admit(group: PointColumns): Admission {
    const { inputs, times, values, count } = group;
    let inOrder = 0;
    let collided = 0;
    this.#late = 0;
    for (let i = 0; i < count; i++) {
      const given = inputs[i]!;
      const value = values[i]!;
      const keeps = given >= keepSameTime;
      const input = keeps ? given - keepSameTime : given;
      if (input >= this.#times.length) this.#grow(input);
      const mark = this.#times[input]!;
      const time = keeps ? this.kept.place(input, times[i]!, mark) : times[i]!;
      if (time > mark) {
        this.#times[input] = time;
        this.#values[input] = value;
        this.#isKnown[input] = 1;
      } else if (time === mark) {
        if (this.#isKnown[input] === 1) {
          if (Object.is(this.#values[input], value)) continue;
          collided++;
        }
        this.#values[input] = value;
        this.#isKnown[input] = 1;
      }
      if (time !== times[i]) collided++;
      if (time > mark && time > this.floor) {
        inputs[inOrder] = input;
        times[inOrder] = time;
        values[inOrder++] = value;
      } else this.#addLate(input, time, value);
    }
    const late = this.#late;
    inputs.set(this.#lateInputs.subarray(0, late), inOrder);
    times.set(this.#lateTimes.subarray(0, late), inOrder);
    values.set(this.#lateValues.subarray(0, late), inOrder);
    return { count: inOrder + late, inOrder, duplicates: count - inOrder - late, collided };
  }

  /** After a failed append: the next try must not drop these points as repeats, nor overtake stored ones. */
  undo({ inputs, times }: PointColumns, { count }: Admission): void {
    for (let i = 0; i < count; i++) {
      this.#isKnown[inputs[i]!] = 0;
      this.kept.free(inputs[i]!, times[i]!);
    }
  }

  #addLate(input: number, time: number, value: number): void {
    if (this.#late === this.#lateTimes.length) {
      this.#lateInputs = copied(this.#lateInputs, new Uint32Array(this.#late * 2));
      this.#lateTimes = copied(this.#lateTimes, new Float64Array(this.#late * 2));
      this.#lateValues = copied(this.#lateValues, new Float64Array(this.#late * 2));
    }
    const at = this.#late++;
    this.#lateInputs[at] = input;
    this.#lateTimes[at] = time;
    this.#lateValues[at] = value;
  }

  #grow(input: number): void {
    const size = 2 ** Math.ceil(Math.log2(input + 2));
    this.#times = copied(this.#times, new Float64Array(size).fill(Number.NEGATIVE_INFINITY));
    this.#values = copied(this.#values, new Float64Array(size));
    this.#isKnown = copied(this.#isKnown, new Uint8Array(size));
  }
}

// Settlement: late points are not settled before the points that they may replace.
//
//   block 7 (live)      a@10 = 1          sent, not settled: another series of the block is not sent yet
//   block 9 (backlog)   a@10 = 2, late    sent and settled
//
// If this settlement reached the disk and the process died, only a@10 = 1 would be sent again: the service would keep
// the older value. So the settlement of block 9 waits until block 7 holds no point of `a`. If block 7 is released
// instead, block 9 is released too, and both are leased again in order.

export interface BlockSettlement {
  readonly block: number;
  readonly inputs: Uint32Array;
  readonly refused: number;
}

/** As `Lease`. */
interface LeasedInputs {
  readonly count: number;
  readonly late: ReadonlySet<number>;
  has(input: number): boolean;
}

interface Waiting {
  readonly settlement: BlockSettlement;
  readonly late: Uint32Array;
  /** An earlier block with points of the late inputs. */
  blocker: number;
}

/** What the owner of the leases does. Undefined: the block is not leased any more. */
interface LeaseCalls<L> {
  settle(lease: L | undefined, settlement: BlockSettlement): void;
  release(lease: L | undefined, block: number): void;
}

/** Settles and releases leases in order. Blocks without unsettled inputs, and released ones, are leased no longer. */
export class SettlementOrder<L extends LeasedInputs> {
  /** Leased blocks by ascending ID. */
  readonly #leased: Map<number, L>;
  readonly #calls: LeaseCalls<L>;
  #waiting: Waiting[] = [];
  /** By block: inputs whose settlement was discarded. They are released with the rest of the block. */
  readonly #revoked = new Map<number, Set<number>>();

  constructor(leased: Map<number, L>, calls: LeaseCalls<L>) {
    this.#leased = leased;
    this.#calls = calls;
  }

  settle(done: Iterable<BlockSettlement>): void {
    for (const settlement of done) if (this.#admit(settlement)) this.#settle(settlement);
    this.settleReady();
  }

  release(blocks: Iterable<number>): void {
    this.#release(blocks);
    this.settleReady();
  }

  /** Settles what waits and is blocked no longer. To be called after `forget`. */
  settleReady(): void {
    for (let at = 0; at < this.#waiting.length; ) {
      const entry = this.#waiting[at]!;
      const { settlement, late, blocker } = entry;
      const next = this.#blocks(blocker, late) ? blocker : this.#blockerOf(settlement.block, late, blocker);
      if (next !== undefined) {
        entry.blocker = next;
        at++;
        continue;
      }
      this.#waiting.splice(at, 1);
      this.#settle(settlement);
      // This settlement may have blocked earlier entries.
      at = 0;
    }
  }

  /** Settles what waits of the block, although others block it: their points are dropped, or were delivered before. */
  settleWaiting(block: number): void {
    for (const settlement of this.#withdraw(block)) this.#settle(settlement);
  }

  /** The block is no longer leased. */
  forget(block: number): void {
    this.#withdraw(block);
    this.#leased.delete(block);
  }

  /** Whether the settlement may be applied now. Otherwise it waits. */
  #admit(settlement: BlockSettlement): boolean {
    const block = this.#leased.get(settlement.block);
    if (!block || block.late.size === 0) return true;
    const late = settlement.inputs.filter((input) => block.late.has(input));
    const blocker = late.length === 0 ? undefined : this.#blockerOf(settlement.block, late, Number.NEGATIVE_INFINITY);
    if (blocker === undefined) return true;
    this.#waiting.push({ settlement, late, blocker });
    return false;
  }

  #settle(settlement: BlockSettlement): void {
    const { block } = settlement;
    const lease = this.#leased.get(block);
    this.#calls.settle(lease, settlement);
    if (lease?.count === 0) this.forget(block);
    else if (this.#isRevoked(block)) this.#release([block]);
  }

  #release(blocks: Iterable<number>): void {
    for (const block of blocks) {
      const lease = this.#leased.get(block);
      const followers = lease ? this.#followersOf(block) : [];
      this.#calls.release(lease, block);
      this.forget(block);
      this.#release(followers);
    }
  }

  /** Whether all unsettled inputs of the block had a discarded settlement. It must then be released. */
  #isRevoked(block: number): boolean {
    const revoked = this.#revoked.get(block);
    return revoked !== undefined && this.#leased.get(block)?.count === revoked.size;
  }

  /** Discards the settlements that wait for the block. Returns the blocks that must be released with it. */
  #followersOf(block: number): number[] {
    const followers: number[] = [];
    this.#waiting = this.#waiting.filter(({ settlement, late }) => {
      if (settlement.block <= block || !this.#blocks(block, late)) return true;
      const revoked = this.#revoked.get(settlement.block) ?? new Set();
      for (const input of settlement.inputs) revoked.add(input);
      this.#revoked.set(settlement.block, revoked);
      followers.push(settlement.block);
      return false;
    });
    return followers.filter((follower) => this.#isRevoked(follower));
  }

  #withdraw(block: number): BlockSettlement[] {
    this.#revoked.delete(block);
    const waited = this.#waiting.filter(({ settlement }) => settlement.block === block);
    if (waited.length > 0) this.#waiting = this.#waiting.filter(({ settlement }) => settlement.block !== block);
    return waited.map(({ settlement }) => settlement);
  }

  /** The first block after `after` and before `block` that holds points of these inputs. */
  #blockerOf(block: number, inputs: Uint32Array, after: number): number | undefined {
    for (const id of this.#leased.keys()) {
      if (id >= block) return undefined;
      if (id > after && this.#blocks(id, inputs)) return id;
    }
    return undefined;
  }

  #blocks(id: number, inputs: Uint32Array): boolean {
    const lease = this.#leased.get(id);
    return lease !== undefined && inputs.some((input) => lease.has(input));
  }
}
