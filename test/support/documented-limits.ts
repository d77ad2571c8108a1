// Figures of the documents that the program states as well. A figure that changes is changed in both.

/** The phrase of the document (spaces for line breaks), and the line of the program that the figure is from. */
export interface DocumentedLimit {
  readonly document: string;
  readonly phrase: string;
  readonly file: string;
  readonly line: string;
}

const of =
  (document: string, folder: string) =>
  ([phrase, file, line]: readonly [string, string, string]): DocumentedLimit => ({
    document,
    phrase,
    file: `src/${folder}/${file}${file.endsWith(".js") ? "" : ".ts"}`,
    line,
  });

const mqtt = of("docs/mqtt.md", "source/mqtt");
const modbus = of("docs/modbus.md", "source/modbus");
const opcua = of("docs/opcua.md", "source/opcua");
const operating = of("docs/operating.md", ".");
const scaling = of("docs/scaling.md", ".");
const service = of("docs/local-service.md", "service");
const promises = of("docs/promises.md", ".");
const discover = of("docs/discover.md", ".");
const security = of("docs/security.md", ".");
const troubleshooting = of("docs/troubleshooting.md", ".");

export const documentedLimits: readonly DocumentedLimit[] = [
  mqtt(["10,000 elements at `[*]`", "decoders/json-path", "const maxElements = 10_000;"]),
  mqtt(["100,000 readings of all tags in one message", "reception/message-reader", "const maxReadings = 100_000;"]),
  mqtt(["32 levels for `.**`", "decoders/json-path", "const maxDepth = 32;"]),
  mqtt(["16 MiB at least", "connection/connect", "const leastMaximumPacket = 16 * 2 ** 20;"]),
  mqtt(["131,072 topics", "reception/reception", "const rememberedTopics = 131_072;"]),
  mqtt(["of up to 1,024 characters", "topics/topic-trie", "export const maxTopic = 1_024;"]),
  mqtt(["10,000 edge nodes", "sparkplug/host", "const maxNodes = 10_000;"]),
  mqtt(["100,000 metrics each", "sparkplug/edge-node", "const maxMetrics = 100_000;"]),
  mqtt(["arrays of 10,000 elements", "sparkplug/wire", "const maxElements = 10_000;"]),
  mqtt(["and 100,000 in one message", "sparkplug/metric-readings", "export const maxElements = 100_000;"]),
  mqtt(["2 s and 16 MiB in all", "sparkplug/host", "const reorderMs = 2_000;"]),
  mqtt(["2 s and 16 MiB in all", "sparkplug/host", "const maxWaitingBytes = 16 * 2 ** 20;"]),
  mqtt(["100 bytes for an element of an array", "sparkplug/host", "const elementBytes = 100;"]),
  mqtt(["one request for a birth in 60 s", "sparkplug/edge-node", "const perNodeMs = 60_000;"]),
  mqtt(["1,000 topics that no tag wants", "reading/message-counts", "const maxTopics = 1_000;"]),
  mqtt(["the 50 most frequent", "reading/message-counts", "const shown = 50;"]),
  mqtt(["the first 200 bytes", "reading/message-counts", "const maxSample = 200;"]),
  mqtt(["`browse` listens for 10 s", "discovery/browse", "const listenMs = 10_000;"]),
  mqtt(["remembers 10,000 topics", "discovery/browse", "const maxTopics = 10_000;"]),
  mqtt(["256 KiB of anything else", "connection/packet-reader", "const maxControl = 256 * 1_024;"]),
  mqtt(["tried again every 5 minutes", "reception/source", "const retryRefusedMs = 300_000;"]),
  mqtt(["the fifth time in a row", "connection/takeover-watch", "const suspicious = 5;"]),
  mqtt(["within 30 s of accepting", "connection/takeover-watch", "const soonMs = 30_000;"]),
  mqtt(["within 0.5 s, again and again", "connection/takeover-watch", "const alikeMs = 500;"]),
  mqtt(["after 5 hang-ups in a row", "connection/session-state", "const maxHangUps = 5;"]),
  modbus(["no request within 40 ms", "connection/bus-watch", "const shortestGapMs = 40;"]),
  modbus(["500 ms at most", "connection/bus-watch", "const longestGapMs = 500;"]),
  modbus(["after 5,000 answers", "connection/bus-watch", "const answersForTrust = 5_000;"]),
  modbus(["the first 32 answers", "connection/bus-watch", "const answersToConfirm = 32;"]),
  modbus(["The third sign of other traffic", "connection/bus-watch", "const fewestSigns = 3;"]),
  modbus(["within ten minutes", "connection/bus-watch", "const disturbedForMs = 600_000;"]),
  modbus(["one to four more registers", "connection/distinct-reads", "const mostMore = 4;"]),
  modbus(["more than eight time-outs", "connection/exchange", "export const slowestTimeouts = 8;"]),
  modbus(["over a fifth longer", "connection/exchange", "export const unsteadiness = 1.2;"]),
  opcua(["100 ms, 250 ms, 500 ms and 1 s", "monitoring/publishing-group", "const intervals = [100, 250, 500, 1_000]"]),
  opcua(["2 to 1,000", "monitoring/publishing-group", "return Math.min(1_000, Math.max(2, needed));"]),
  opcua(["RSA 3072", "session/pki", "keySize: 3072,"]),
  opcua(["for ten years", "session/pki", "const tenYears = 3_650;"]),
  opcua(["values wait 5 s at most", "connection/source", "const describedWithinMs = 5_000;"]),
  opcua(["some 5,000 values a call", "history/history", "const valuesPerAnswer = 5_000;"]),
  opcua(["at most 100 nodes", "history/gap-filler", "new BatchSize(options.limit, 100)"]),
  opcua(["tried again each minute", "history/backfill", "const retryMs = 60_000;"]),
  opcua(["ten times", "history/gap-filler", "const mostFailures = 10;"]),
  opcua(["is read once a second", "redundancy/server-watch", "const readEveryMs = 1_000;"]),
  opcua(["healthy (200 to 255)", "redundancy/service-level", "healthy: 200 }"]),
  opcua(["is 20 or more below", "redundancy/service-level", "const worthwhile = 20;"]),
  opcua(["within 30 s of the last change", "redundancy/service-level", "export const holdMs = 30_000;"]),
  opcua(["up to 30 s early", "history/backfill", "const saveEveryMs = 30_000;"]),
  opcua(["browsed again every 10 min", "monitoring/retry", "const roundsBetweenBrowses = 10;"]),
  opcua(["more than 32 MiB", "session/stack", "export const largestMessageBytes = 32 * 1024 * 1024;"]),
  operating(["at most 64 files", "buffer/disk/files/quarantine", "const maxFiles = 64;"]),
  operating(["more than 100 plain registers", "discover/tags-yaml", "const mostPlain = 100;"]),
  operating(["after 5 minutes at most", "upload/delivery/outcome-handler", "const longestHoldMs = 300_000;"]),
  operating(["from the tenth minute on", "upload/delivery/delivery-status", "= 10 * minuteMs;"]),
  operating(["used again within 50 s", "upload/client/connections", "const idleMs = 50_000;"]),
  operating(["latest 2,000 log lines", "agent/otlp/log-queue", "const mostLines = 2_000;"]),
  operating(["2.10.23 or later", "cli/configure/check-cluster", 'const oldestServer = "2.10.23";']),
  operating([
    "the last 10 minutes, at most 1 GiB",
    "buffer/jetstream/forwarder",
    "keepMs = 600_000, keepBytes = 2 ** 30",
  ]),
  scaling(["for 10 minutes, at most 1 GiB", "buffer/jetstream/forwarder", "keepMs = 600_000, keepBytes = 2 ** 30"]),
  scaling(["none for 20 s", "cluster/turn-request", "const patienceMs = 20_000;"]),
  scaling(["0.5 s for the connection of the former reader", "cluster/source-leases", "const closingMs = 500;"]),
  scaling(["for at most 2 s, and releases", "agent/upkeep/cluster-sources", "const lastSaveMs = 2_000;"]),
  scaling(["when it has run for a minute", "cluster/placement", "export const holdDownMs = 60_000;"]),
  scaling(["up to 30 s until the order", "cli/cluster/cluster", "const followedWithinMs = 30_000;"]),
  scaling(["came in 200 ms", "buffer/jetstream/forwarder", "const gatherMs = 200;"]),
  scaling(["forecasts 1.8 bytes a point", "cli/configure/check", "const streamBytes = 1.8;"]),
  scaling(["at the latest a minute", "agent/upkeep/cluster-delivery", "const adaptEveryMs = 60_000;"]),
  scaling(["less than twice the age", "cluster/nats-stream", "2 * oldestMs < options.maxAge"]),
  scaling(["to all others every 2 s", "cluster/membership", "const beatMs = 2_000;"]),
  scaling(["after 15 s without an answer", "cluster/cluster", "const leaderlessMs = 15_000;"]),
  scaling(["2.10.23 or later", "cli/configure/check-cluster", 'const oldestServer = "2.10.23";']),
  scaling(["more than 700 ms", "cluster/lease-gate", "export const startWithinMs = 700;"]),
  service(["503 (256 MiB of waiting bodies", "http/rpc-endpoint", "const maxHeldBytes = 256 * 2 ** 20;"]),
  service(["128 MiB of answers", "http/rpc-endpoint", "const maxUnreadBytes = 128 * 2 ** 20;"]),
  service(["less than 32 KiB/s", "http/rpc-endpoint", "const slowestBytesPerMs = 32;"]),
  service(["once, within ten minutes", "http/late-outcomes", "const keptMs = 600_000;"]),
  service(["of 1 KiB and more are compressed", "http/content-coding", "const leastBytes = 1_024;"]),
  service(["matches more than 1,000 items", "method/evaluate-params", "const maxGroup = 1_000;"]),
  service(["more than 100 groups", "method/evaluate-params", "const maxGroups = 100;"]),
  service(["at most 1,000 conditions", "query/filter", "const maxConditions = 1_000;"]),
  service(["16 deep", "query/filter", "const maxDepth = 16;"]),
  service(["in at most 1,000,000 buckets", "query/rollup", "export const maxStateBuckets = 1_000_000;"]),
  service(["at most 100,000,000", "method/evaluate-series", "const maxOperations = 100_000_000;"]),
  service(["more than 5,000,000 cells", "query/frame-builder", "const maxCells = 5_000_000;"]),
  service(["20 a minute and integration", "http/admission", "const tokensPerMinute = 20;"]),
  service(["last 7,200 s", "http/token-endpoint", "const tokenSeconds = 7_200;"]),
  service(["block by block, every ten minutes", "service", "const expireEveryMs = 600_000;"]),
  promises(["latest 64 ranges of times", "buffer/disk/segments/kept-times", "export const mostKeptRanges = 64;"]),
  promises(["holds up to 8,192", "buffer/disk/segments/segment-writer", "const maxRecordPoints = 8_192;"]),
  promises(["every 5 s to 5 min", "upload/failures/parked-inputs", "refused: { minMs: 5_000, maxMs: 300_000 },"]),
  promises(["five failures within 30 s", "upload/failures/failure-search", "const leastFailures = 5;"]),
  promises(["five failures within 30 s", "upload/failures/failure-search", "const leastMs = 30_000;"]),
  discover(["500 tags at most", "web/page/discover-nodes.js", "const mostBelow = 500;"]),
  discover(["4 devices at a time", "discover/looks", "const mostLooks = 4;"]),
  discover(["after two minutes", "discover/looks", "const idleMs = 120_000;"]),
  discover(["A request takes 20 s at most", "discover/discover", "const withinMs = 20_000;"]),
  security(["16 KiB of headers", "web/server", "maxHeaderSize: 16_384,"]),
  security(["10 s for them", "web/server", "headersTimeout: 10_000,"]),
  security(["30 s for a request", "web/server", "requestTimeout: 30_000,"]),
  security(["128 connections", "web/server", "const maxConnections = 128;"]),
  security(["a wrong one waits a second", "web/server", "const guessedMs = 1_000;"]),
  security(["from 30 days before", "source/opcua/connection/open", "const certificateWarningMs = 30 * 86_400_000;"]),
  troubleshooting(["after 1 s, later up to 30 s", "agent/pipeline", "minMs: 1_000, maxMs: 30_000"]),
  troubleshooting(["after 1 to 15 s", "upload/delivery/outcome-handler", "minMs: 1_000, maxMs: most(15_000)"]),
  troubleshooting(["after 5 to 60 s", "upload/delivery/outcome-handler", "minMs: 5_000, maxMs: Math.min(most(60_000)"]),
  troubleshooting(["one request a minute is tried", "upload/delivery/outcome-handler", "const breakerMs = 60_000;"]),
];
