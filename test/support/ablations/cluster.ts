// The safeguards of delivery by one agent of several.
import type { Ablation } from "./ablation.ts";

const rate = "unit/cluster/delivery-rate.test.ts";
const sources = "unit/cluster/source-leases.test.ts";
const lease = "unit/cluster/lease.test.ts";
const turns = "unit/agent/command-turns.test.ts";
const metadata = "unit/cluster/shared-signals.test.ts";

export const clusterAblations: readonly Ablation[] = [
  {
    safeguard: "renewing the delivery lease before each request",
    file: "cluster/lease-gate.ts",
    code: "await orAbort(term.renew(), signal);",
    without: "(await Promise.resolve(), clock.monotonic());",
    test: rate,
  },
  {
    safeguard: "a request that starts late after its renewal is not sent",
    file: "cluster/lease-gate.ts",
    code: "clock.monotonic() - renewedAt < startWithinMs",
    without: "renewedAt > 0",
    test: rate,
  },
  {
    safeguard: "a new holder of the delivery lease waits",
    file: "cluster/lease-gate.ts",
    code: "term.since + intervalMs + startWithinMs + transitMs",
    without: "term.since",
    test: rate,
  },
  {
    safeguard: "a request counts from its first byte, not from its turn",
    file: "upload/client/pacer.ts",
    code: "          if (isSent) begin();\n",
    without: "",
    test: rate,
  },
  {
    safeguard: "asking whether a request may start when its connection is there",
    file: "upload/client/http-post.ts",
    code: "turn?.start() === false",
    without: "false",
    test: "unit/upload/http-post.test.ts",
  },
  {
    safeguard: "a lease is taken only if nobody has renewed it for its time to live",
    file: "cluster/lease.ts",
    code: "askedAt - (seen?.since ?? askedAt) >= ttlMs",
    without: "true",
    test: lease,
  },
  {
    safeguard: "a term that cannot be renewed ends by itself",
    file: "cluster/lease.ts",
    code: "const left = this.#renewedAt + ttlMs - clock.monotonic();",
    without: "const left = ttlMs;",
    test: lease,
  },
  {
    safeguard: "a renewal whose answer was lost belongs to the term",
    file: "cluster/lease.ts",
    code: "if (!entry || holderOf(entry).token !== this.#acquired.token) {",
    without: "if (true) {",
    test: lease,
  },
  {
    safeguard: "the uploader ends with its term",
    file: "agent/upkeep/delivery.ts",
    code: "term.signal ? AbortSignal.any([stop.signal, term.signal]) : stop.signal",
    without: "stop.signal",
    test: "unit/agent/delivery-terms.test.ts",
  },
  {
    safeguard: "an agent whose term cannot begin is not said to stand still",
    file: "agent/upkeep/delivery.ts",
    code: 'known?.code.startsWith("CLUSTER_")',
    without: "false",
    test: "unit/agent/delivery-terms.test.ts",
    name: "standstill",
  },
  {
    safeguard: "a new reader waits until the former one has noticed",
    file: "cluster/source-leases.ts",
    code: "    await wait(ttlMs / renewals + closingMs);\n",
    without: "",
    test: sources,
  },
  {
    safeguard: "the connection is closed before the lease of a source is given back",
    file: "cluster/source-leases.ts",
    code: "      await stop(source);\n",
    without: "      void stop(source);\n",
    test: sources,
    name: "orders that outlast",
  },
  {
    safeguard: "the hold-down before a source returns",
    file: "cluster/placement.ts",
    code: "one.node === node || one.aliveMs >= holdDownMs",
    without: "true",
    test: sources,
  },
  {
    safeguard: "a member that is silent is gone",
    file: "cluster/membership.ts",
    code: "now - changedAt < beatsMissed * beatMs ? now - aliveSince : undefined",
    without: "now - aliveSince",
    test: sources,
  },
  {
    safeguard: "of several descriptions of a signal, the last change applies",
    file: "cluster/shared-signals.ts",
    code: "      if (order !== this.#orders.get(input)) continue;\n",
    without: "",
    test: metadata,
    name: "the last change applies",
  },
  {
    safeguard: "merged parts keep the order of their signals",
    file: "cluster/signal-parts.ts",
    code: "order: order ?? revision",
    without: "order: revision",
    test: metadata,
    name: "keep which description was the last one",
  },
  {
    safeguard: "metadata that the servers have lost is published again",
    file: "cluster/published-signals.ts",
    code: "if (entry?.revision === this.#last.revision) return;",
    without: "if (this.#last.revision > 0) return;",
    test: metadata,
  },
  {
    safeguard: "no signal is reported as unconfigured while an agent's signals are not known",
    file: "cluster/shared-signals.ts",
    code: "!this.#isComplete || ",
    without: "",
    test: metadata,
  },
  {
    safeguard: "renewing the delivery lease before a command gets its turn",
    file: "agent/upkeep/command-turns.ts",
    code: "    await gate.pass(signal);\n",
    without: "",
    test: turns,
  },
  {
    safeguard: "a command that starts late after its question does not send",
    file: "cluster/turn-request.ts",
    code: "clock.monotonic() - askedAt < startWithinMs",
    without: "askedAt > 0",
    test: turns,
  },
  {
    safeguard: "the turn of a command lasts as long as its request may take to be counted",
    file: "agent/upkeep/command-turns.ts",
    code: "clock.sleep(startWithinMs + transitMs, signal)",
    without: "clock.sleep(1, signal)",
    test: turns,
  },
];
