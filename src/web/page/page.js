// The overview: hands each view of the stream to the headline, the table and the panels.
import { showCertificates } from "./certificates.js";
import { byId } from "./element.js";
import { showGaps } from "./gaps.js";
import { showHeadline } from "./headline.js";
import { showSignals } from "./signals.js";
import { showSources, showUnknown } from "./sources.js";
import { Stream, showAgent } from "./stream.js";
import { TagTable } from "./tag-table.js";

/** The panels change with every second view, the tags with each one: any change costs the browser most of its work. */
const panelsEvery = 2;
let views = 0;

const table = new TagTable(byId("tags"), (ms) => {
  views = 0;
  stream.later(ms);
});

const stream = new Stream(
  () => table.query,
  ({ status, tags, commands }) => {
    const now = status.time / 1_000;
    table.show(tags, status.sources, now);
    if (views++ % panelsEvery !== 0) return;
    showAgent(status);
    showHeadline(status, commands, showCertificates(status.sources, now));
    showSources(status.sources, now);
    showUnknown(status.sources);
    showGaps(status.gaps, now);
    showSignals(status.upload, now);
  },
);
