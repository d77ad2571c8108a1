// Tells when the broker has stopped sending, or soon will, until messages are acknowledged: a commit that waits for more
// messages then waits in vain.
//
// A broker keeps a limited number of QoS 1 and 2 messages unacknowledged, its send window. With MQTT 5 that is at most our
// receive maximum, but brokers have limits of their own (EMQX: 32), and with 3.1.1 no packet carries the limit (mosquitto
// and VerneMQ: 20). So the window is learned:
//
//   in flight   20 |      ______________________          The stream stalls: nothing arrives during the second half
//                  |   __/                                of a wait. Twice in succession: the window is taken to be
//                0 |__/                                   what was in flight, here 20.
//                  +---------+---------+-------> time
//                  wait      half      commit
//
// From then on a commit is due at half the window, so that the broker goes on sending during the sync, and at once while
// the window was full: the broker has a backlog, and its throughput is the window divided by the time to the
// acknowledgement. A slow stream stalls like a full window; committing such messages one by one costs no more than the
// stream brings. To tell both apart, a wait runs to its end every now and then: more in flight than the window disproves it.

/** More in flight are committed without waiting: a commit of so many costs next to nothing a message. */
const enough = 256;
/** Milliseconds that a wait must have taken to be judged: stalls are told from the pauses between packets. */
const leastWaitMs = 20;
/** Milliseconds for which a window that was full is taken to fill up again: longer than the way to most brokers and back. */
const stillFullMs = 100;
/**
 * Milliseconds until a learned window is tested again, doubled after each test without success. A wait of 50 ms costs a
 * full window little.
 */
const firstProbeMs = 1_000;
const lastProbeMs = 64_000;

interface Wait {
  readonly since: number;
  /** Runs to its end, whatever the learned window says. */
  readonly isProbe: boolean;
  readonly hurry: () => void;
  hurried: boolean;
}

/** The send window of one connection. Pure: times are milliseconds of a monotonic clock. */
export class SendWindow {
  readonly #most: number;
  #inFlight = 0;
  #arrivedAt = 0;
  /** Messages; infinite while nothing speaks for a window. */
  #learned = Number.POSITIVE_INFINITY;
  /** In flight when the wait before stalled; 0: it did not. */
  #stalledAt = 0;
  /** The window was full a short while before that. */
  #fullUntil = 0;
  #probeMs = firstProbeMs;
  #probeAt = 0;
  #wait: Wait | undefined;

  /** `receiveMaximum`: the most messages that the broker may keep unacknowledged, so far as that is known. */
  constructor(receiveMaximum = 65_535) {
    this.#most = Math.min(enough, receiveMaximum / 2);
  }

  /** Messages arrived that are to be acknowledged. */
  received(messages: number, now: number): void {
    if (messages === 0) return;
    this.#inFlight += messages;
    this.#arrivedAt = now;
    if (this.#inFlight > this.#learned) this.#disprove(now);
    if (this.#inFlight >= this.#learned) this.#fullUntil = now + stillFullMs;
    this.#hurryWhenFilling();
  }

  /** Some of the messages wait for their commit from now on. Calls `hurry` once that should not be delayed any longer. */
  waiting(now: number, hurry: () => void): void {
    const isProbe = Number.isFinite(this.#learned) && now >= this.#probeAt;
    this.#wait = { since: now, isProbe, hurry, hurried: false };
    if (now < this.#fullUntil && !isProbe) this.#hurry(this.#wait);
    this.#hurryWhenFilling();
  }

  /** What was waiting is stored, and will be acknowledged. */
  stored(now: number): void {
    if (this.#wait && !this.#wait.hurried) this.#judge(this.#wait, now);
    this.#wait = undefined;
  }

  acknowledged(messages: number): void {
    this.#inFlight -= messages;
  }

  #hurryWhenFilling(): void {
    const wait = this.#wait;
    if (!wait || wait.hurried) return;
    const limit = wait.isProbe ? this.#most : Math.min(this.#most, this.#learned / 2);
    if (this.#inFlight >= limit) this.#hurry(wait);
  }

  #hurry(wait: Wait): void {
    wait.hurried = true;
    wait.hurry();
  }

  /** Learns from a wait that ran to its end. */
  #judge({ since, isProbe }: Wait, now: number): void {
    if (isProbe && Number.isFinite(this.#learned)) {
      this.#probeMs = Math.min(lastProbeMs, 2 * this.#probeMs);
      this.#probeAt = now + this.#probeMs;
    }
    const waited = now - since;
    const stalled = waited >= leastWaitMs && now - this.#arrivedAt >= waited / 2;
    if (stalled && this.#stalledAt > 0) {
      if (!Number.isFinite(this.#learned)) this.#probeAt = now + this.#probeMs;
      this.#learned = Math.max(this.#stalledAt, this.#inFlight);
    }
    this.#stalledAt = stalled ? this.#inFlight : 0;
  }

  /** The window is larger than was learned: after a probe nothing is known of it any more. */
  #disprove(now: number): void {
    this.#learned = this.#wait?.isProbe ? Number.POSITIVE_INFINITY : this.#inFlight;
    this.#stalledAt = 0;
    this.#probeMs = firstProbeMs;
    this.#probeAt = Math.min(this.#probeAt, now + firstProbeMs);
  }
}
