// A broker with a limited send window, and a client that stores what it receives. It makes one commit at a time, each
// of which waits for further messages as the send window determines. Time is simulated.
import { SendWindow } from "../../src/source/mqtt/receiver/receive-queue.ts";

export interface ModelOptions {
  /** The number of messages that the broker leaves unacknowledged. */
  readonly window: number;
  /** Milliseconds from one publication to the next; 0: the broker has an endless backlog. */
  readonly between: () => number;
  /** Network latency in each direction in milliseconds. */
  readonly way: number;
  /** The duration of a sync in milliseconds. */
  readonly sync: () => number;
  /** The maximum time that a commit waits for further messages, in milliseconds. */
  readonly delay: number;
  /** Whether the send window may shorten that. */
  readonly learns: boolean;
  /** Milliseconds. */
  readonly duration: number;
  readonly receiveMaximum?: number;
}

export interface ModelResult {
  readonly acknowledged: number;
  readonly commits: number;
  /** The longest time from the arrival of a message to its acknowledgement, in milliseconds. */
  readonly longest: number;
}

/** The number of messages that the network transmits in a millisecond. */
const perMs = 100;

export function runSendWindow(options: ModelOptions): ModelResult {
  const { window, between, way, sync, delay, learns, duration, receiveMaximum } = options;
  const learned = new SendWindow(receiveMaximum);
  const events: { readonly at: number; readonly run: () => void }[] = [];
  let now = 0;
  let queued = 0;
  let inFlight = 0;
  const queue: { readonly at: number; readonly count: number }[] = [];
  let isBusy = false;
  let acknowledged = 0;
  let commits = 0;
  let longest = 0;

  const after = (ms: number, run: () => void) => {
    const event = { at: now + ms, run };
    const place = events.findLastIndex(({ at }) => at <= event.at);
    events.splice(place + 1, 0, event);
  };
  let isSending = false;
  const send = () => {
    const room = Math.min(window - inFlight, queued, perMs);
    if (room <= 0 || isSending) return;
    isSending = true;
    queued -= room;
    inFlight += room;
    after(way, () => {
      queue.push({ at: now, count: room });
      learned.received(room, now);
      store();
    });
    // The others follow at the rate of the network.
    after(1, () => {
      isSending = false;
      send();
    });
  };
  const store = () => {
    if (isBusy || queue.length === 0) return;
    isBusy = true;
    const batch = queue.splice(0);
    const count = batch.reduce((sum, each) => sum + each.count, 0);
    let isSent = false;
    const commit = () => {
      if (isSent) return;
      isSent = true;
      after(sync(), () => {
        commits++;
        acknowledged += count;
        longest = Math.max(longest, now - batch[0]!.at);
        learned.stored(now);
        learned.acknowledged(count);
        after(way, () => {
          inFlight -= count;
          send();
        });
        isBusy = false;
        store();
      });
    };
    after(delay, commit);
    if (learns) learned.waiting(now, commit);
  };
  const publish = () => {
    queued++;
    send();
    after(between(), publish);
  };
  if (between() === 0) {
    queued = Number.POSITIVE_INFINITY;
    after(0, send);
  } else after(between(), publish);
  while (events[0] && events[0].at <= duration) {
    const event = events.shift()!;
    now = event.at;
    event.run();
  }
  return { acknowledged, commits, longest };
}
