// Detects that the broker has stopped sending, or soon will, until messages are acknowledged. A commit that waits for
// more messages is then useless.
//
// A broker limits the number of unacknowledged QoS 1 and 2 messages, its send window. With MQTT 5, the receive maximum
// is the upper bound, but brokers have their own limits (EMQX: 32). With 3.1.1, no packet carries the limit (mosquitto
// and VerneMQ: 20). So the window is learned:
//
//   in flight   20 |      ______________________          The stream stalls: nothing arrives during the second half
//                  |   __/                                of a wait. After two stalls in a row, the number in flight,
//                0 |__/                                   here 20, is taken as the window.
//                  +---------+---------+-------> time
//                  wait      half      commit
//
// From then on, a commit is due at half the window, so that the broker continues to send during the sync. While the
// window was recently full, a commit is due at once. The broker then has a backlog, and its throughput is the window
// divided by the acknowledgement delay. A slow stream also stalls, but its commits are few. To tell both apart, a wait
// sometimes runs to its end. More messages in flight than the window disprove it.

/** With more messages in flight, a commit does not wait, since its cost per message is negligible. */
const enough = 256;
/** Shortest wait that is evaluated, in milliseconds. It distinguishes stalls from pauses between packets. */
const leastWaitMs = 20;
/** How long a full window counts as full, in milliseconds: more than the round trip to most brokers. */
const stillFullMs = 100;
/** Milliseconds until a learned window is tested again; doubles after each test that confirms it. */
const firstProbeMs = 1_000;
const lastProbeMs = 64_000;

interface Wait {
  readonly since: number;
  /** Whether the wait ignores the learned window and runs to its end. */
  readonly isProbe: boolean;
  readonly hurry: () => void;
  hurried: boolean;
}

/** The send window of one connection. Times are monotonic milliseconds. */
export class SendWindow {
  readonly #most: number;
  #inFlight = 0;
  #arrivedAt = 0;
  /** In messages. Infinite: no window was detected. */
  #learned = Number.POSITIVE_INFINITY;
  /** Messages in flight when the previous wait stalled; 0: it did not. */
  #stalledAt = 0;
  /** Until this time, the window counts as recently full. */
  #fullUntil = 0;
  #probeMs = firstProbeMs;
  #probeAt = 0;
  #wait: Wait | undefined;

  /** `receiveMaximum`: upper bound of unacknowledged messages, if known. */
  constructor(receiveMaximum = 65_535) {
    this.#most = Math.min(enough, receiveMaximum / 2);
  }

  /** Call when messages that need an acknowledgement arrive. */
  received(messages: number, now: number): void {
    if (messages === 0) return;
    this.#inFlight += messages;
    this.#arrivedAt = now;
    if (this.#inFlight > this.#learned) this.#disprove(now);
    if (this.#inFlight >= this.#learned) this.#fullUntil = now + stillFullMs;
    this.#hurryWhenFilling();
  }

  /** Starts a wait before a commit. Calls `hurry` once the commit should not be delayed further. */
  waiting(now: number, hurry: () => void): void {
    const isProbe = Number.isFinite(this.#learned) && now >= this.#probeAt;
    this.#wait = { since: now, isProbe, hurry, hurried: false };
    if (now < this.#fullUntil && !isProbe) this.#hurry(this.#wait);
    this.#hurryWhenFilling();
  }

  /** Ends the wait: its messages are stored and will be acknowledged. */
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

  /** Learns from a wait that was not shortened. */
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

  /** More messages are in flight than the learned window. If a probe shows it, the window is unknown again. */
  #disprove(now: number): void {
    this.#learned = this.#wait?.isProbe ? Number.POSITIVE_INFINITY : this.#inFlight;
    this.#stalledAt = 0;
    this.#probeMs = firstProbeMs;
    this.#probeAt = Math.min(this.#probeAt, now + firstProbeMs);
  }
}
