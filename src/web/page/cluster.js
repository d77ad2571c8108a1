// The cluster: its agents, which of them delivers and what each reads, and the stream that they share.
import { byId, cells, element, keyed, setHidden, setText } from "./element.js";
import { listRow, pill, showFigures } from "./figures.js";
import * as format from "./format.js";

export function showCluster(cluster) {
  setHidden(byId("cluster"), cluster === undefined);
  if (!cluster) return;
  const { connected, hasQuorum, server, reason, delivers, agents, stream, forwardLagMs } = cluster;
  const [word, colour] = stateOf(cluster);
  pill(byId("cluster-state"), word, colour);
  setText(
    byId("cluster-note"),
    connected
      ? `connected to ${server}; ${delivers === undefined ? "no agent delivers" : `${delivers} delivers`}`
      : `not reachable: ${reason}; points stay in the buffer of this agent`,
  );
  const unknown = "–";
  showFigures(byId("cluster-figures"), [
    ["handed over late by", format.duration(forwardLagMs)],
    ["messages in the stream", stream ? format.count(stream.messages) : unknown],
    [
      stream ? `in the stream, of ${format.bytes(stream.maxBytes)}` : "in the stream",
      stream ? format.bytes(stream.bytes) : unknown,
      stream ? stream.bytes / stream.maxBytes : 0,
    ],
    ["age of the oldest message", stream ? format.duration(stream.oldestMs) : unknown],
    ["replicas in place", stream ? `${stream.replicasInPlace} of ${stream.replicas}` : unknown],
    ["quorum of the servers", connected && hasQuorum ? "yes" : "no"],
  ]);
  keyed(
    byId("cluster-agents"),
    agents.toSorted((a, b) => (a.node < b.node ? -1 : 1)),
    ({ node }) => node,
    () => {
      const row = cells({ name: "bdi.strong", state: "span.pill", reads: "span", about: "span.quiet" });
      const { name, state, reads, about } = row;
      return { ...row, node: listRow("row", [element("div", { className: "who" }, name, about), state, reads]) };
    },
    (row, { node, version, aliveMs, reads, forwardLagMs: lagMs = 0, backlogPoints = 0 }) => {
      setText(row.name, node);
      if (aliveMs === undefined) pill(row.state, "gone", "warn");
      else pill(row.state, node === delivers ? "delivers" : "standby", node === delivers ? "good" : "note");
      const verb = aliveMs === undefined ? "last read" : "reads";
      setText(row.reads, `${verb} ${reads.length === 0 ? "nothing" : reads.join(", ")}`);
      const late = lagMs > 1_000 ? `, hands over ${format.duration(lagMs)} late` : "";
      const waiting = backlogPoints > 0 ? `, ${format.count(backlogPoints)} points not handed over` : "";
      setText(row.about, `tagferry ${version}${aliveMs === undefined ? "" : late + waiting}`);
    },
  );
}

function stateOf({ connected, hasQuorum, forwardPaused, stream }) {
  if (!connected) return ["unreachable", "bad"];
  if (!hasQuorum) return ["no quorum", "bad"];
  if (forwardPaused === "full") return ["stream full", "warn"];
  if (stream && stream.replicasInPlace < stream.replicas) return ["replica missing", "warn"];
  return ["connected", "good"];
}
