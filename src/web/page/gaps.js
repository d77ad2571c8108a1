// Intervals in which tags were not recorded, and what became of them.
import { byId, cells, element, setText } from "./element.js";
import { Lookup, listRow, pill, ShortList } from "./figures.js";
import * as format from "./format.js";
import { words } from "./words.js";

const asked = new Lookup("api/gaps?since=7d&most=100", 2_000);
const list = new ShortList(byId("gaps"), 6);

/** Shows and returns the gaps of one tag: those that name it, and those that may include it. */
export function showTagGaps({ gaps: summary, time }, { source, input }) {
  const now = time / 1_000;
  void asked.refresh(summary.revision, () => showTagGaps({ gaps: summary, time }, { source, input }));
  if (!asked.answer) return [];
  const { gaps, more } = asked.answer;
  const own = gaps.filter((gap) => (gap.source ?? source) === source && (names(gap, input) || mayInclude(gap)));
  const number = own.length === 0 ? "none" : format.count(own.length);
  const read = `among the latest ${format.count(gaps.length)} of ${format.count(gaps.length + more)} gaps`;
  setText(byId("gaps-count"), `${number} ${more > 0 ? read : "in the last 7 days"}`);
  const isUnsure = own.some((gap) => !names(gap, input));
  setText(byId("gaps-note"), isUnsure ? "Gaps of several tags that may include this one are among them." : "");
  list.show(own, keyOf, create, (row, gap) => update(row, gap, now));
  return own;
}

function names({ inputs }, input) {
  return inputs.includes(input);
}

/** A gap of a source or of the buffer names no tag, and one of many tags not all of them. */
function mayInclude({ inputs, tags }) {
  return inputs.length === 0 || tags > inputs.length;
}

export function showGaps(summary, now) {
  const { open, day, dayLost, revision } = summary;
  void asked.refresh(revision, () => showGaps(summary, now));
  const { gaps = [], more = 0 } = asked.answer ?? {};
  const parts = [];
  if (open > 0) parts.push(`${format.count(open)} now`);
  parts.push(day === 0 ? "none in the last 24 h" : `${format.count(day)} in the last 24 h`);
  if (dayLost > 0) parts.push(`${format.count(dayLost)} with values lost`);
  setText(byId("gaps-count"), parts.join(", "));
  setText(
    byId("gaps-note"),
    gaps.length === 0 && (asked.answer === undefined || open + day > 0)
      ? ""
      : gaps.length === 0
        ? "Every tag was recorded without interruption, as far back as the record goes, 7 days at most."
        : more > 0
          ? `The latest ${gaps.length} of ${format.count(gaps.length + more)} in the last 7 days; all: tagferry gaps`
          : "The last 7 days.",
  );
  const sorted = [...gaps.filter((gap) => gap.to === undefined), ...gaps.filter((gap) => gap.to !== undefined)];
  list.show(sorted, keyOf, create, (row, gap) => update(row, gap, now));
}

function keyOf({ id, source, from }) {
  return `${id} ${source} ${from}`;
}

function create() {
  const row = cells({
    state: "span.pill",
    who: "bdi.strong",
    tags: "bdi.quiet",
    long: "span.strong",
    when: "span.quiet",
  });
  const text = cells({ why: "p.why", remedy: "p.quiet" });
  const node = listRow("gap row", [
    element("div", {}, row.state),
    element("div", { className: "who" }, row.who, row.tags),
    element("div", { className: "who" }, row.long, row.when),
    element("div", { className: "who" }, text.why, text.remedy),
  ]);
  return { ...row, ...text, node };
}

function update(row, gap, now) {
  const { word, level } = words.gap[gap.state];
  pill(row.state, word, level);
  setText(row.who, gap.source ?? "buffer");
  setText(row.tags, tagsOf(gap));
  const long = format.duration(gap.missingMs ?? (gap.to === undefined ? now : gap.to / 1_000) - gap.from / 1_000);
  setText(row.long, gap.times > 1 ? `${long} in ${format.count(gap.times)} times` : long);
  setText(row.when, format.interval(gap, now));
  const why = [`${words.gapCause[gap.cause].word}: ${gap.reason}`];
  if (gap.points !== undefined) why.push(`${format.count(gap.points)} points`);
  if (gap.outcome !== undefined) why.push(gap.outcome);
  setText(row.why, why.join("; "));
  // A device that is connected again needs no remedy.
  const over =
    gap.state === "filled" || gap.state === "filling" || (gap.cause === "disconnected" && gap.to !== undefined);
  setText(row.remedy, over ? "" : words.gapCause[gap.cause].remedy);
}

function tagsOf({ source, tags, inputs }) {
  if (inputs.length > 0 && inputs.length <= 2) return inputs.join(", ");
  if (inputs.length > 0) return `${inputs[0]} and ${format.count(Math.max(tags, inputs.length) - 1)} more`;
  if (source === undefined) return "tags of any source";
  return tags === 0 ? "all its tags" : tags === 1 ? "1 tag" : `${format.count(tags)} tags`;
}
