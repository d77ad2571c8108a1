// The pages and their files, read once at startup. All pages have the same frame: head, name, links and notices.
import { words } from "../agent/status/words.ts";
import { loadPageFiles, loadPlotFiles, type PageFile } from "../lib/network/page-files.ts";

interface PageParts {
  readonly path: string;
  /** The contents of `<main>`; a file in `page/`. */
  readonly main: string;
  readonly title: string;
  /** Whether the other pages link to it. */
  readonly linked: boolean;
  /** The module that fills it. */
  readonly script: string;
  /** Modules that the script imports, which a browser would otherwise request one level after the other. */
  readonly preloads?: string;
  readonly plots?: boolean;
  /** A style sheet of its own, which comes after the one for all pages. */
  readonly styles?: string;
}

const pages: readonly PageParts[] = [
  {
    path: "/",
    main: "index.html",
    title: "Overview",
    linked: true,
    script: "page",
    preloads: "stream headline element format words tag-table figures sources gaps signals certificates",
  },
  { path: "/delivery", main: "delivery.html", title: "Delivery", linked: true, script: "delivery", plots: true },
  {
    path: "/discover",
    main: "discover.html",
    title: "Add tags",
    linked: true,
    script: "discover",
    styles: "discover",
    preloads: "discover-change discover-decision discover-nodes discover-trust element format stream token",
  },
  { path: "/config", main: "config.html", title: "Configuration", linked: true, script: "config" },
  { path: "/log", main: "log.html", title: "Log", linked: true, script: "log" },
  { path: "/tag", main: "tag.html", title: "Tag", linked: false, script: "tag", plots: true },
];

/** Script modules in `page/`. */
const scripts =
  "page delivery element format headline stream certificates cluster figures gaps refused signals sources tag-table chart plot-gaps token tag config log discover discover-change discover-decision discover-nodes discover-trust".split(
    " ",
  );

/** The files by the path of their request. */
export async function loadPages(): Promise<ReadonlyMap<string, PageFile>> {
  const folder = new URL("./page/", import.meta.url);
  const [mains, files, plots] = await Promise.all([
    loadPageFiles(folder, { frame: "frame.html", ...Object.fromEntries(pages.map(({ path, main }) => [path, main])) }),
    loadPageFiles(folder, {
      // One file, since browsers paint only after the last style sheet has arrived.
      "/page.css": "page.css headline.css panels.css tables.css lists.css settings.css",
      "/discover.css": "discover.css",
      "/icon.svg": "icon.svg",
      ...Object.fromEntries(scripts.map((name) => [`/${name}.js`, `${name}.js`])),
    }),
    loadPlotFiles("/", import.meta.url),
  ]);
  const frame = textOf(mains.get("frame"));
  const framed = pages.map((page): [string, PageFile] => {
    const parts = { title: page.title, loads: loadsOf(page), links: linksOf(page), main: textOf(mains.get(page.path)) };
    // By a function, since a replacement text gives `$` a meaning.
    const text = Object.entries(parts).reduce((all, [name, part]) => all.replace(`{${name}}`, () => part), frame);
    return [page.path, { type: "text/html; charset=utf-8", body: Buffer.from(text) }];
  });
  return new Map([...files, ...plots, ...framed, ["/words.js", wordsScript]]);
}

function textOf(file: PageFile | undefined): string {
  return file?.body.toString() ?? "";
}

function loadsOf({ script, preloads = "", styles, plots = false }: PageParts): string {
  const names = preloads.split(" ").filter((name) => name !== "");
  return [
    ...(plots
      ? ['<link rel="stylesheet" href="uPlot.min.css" />', '<script src="uPlot.iife.min.js" defer></script>']
      : []),
    '<link rel="stylesheet" href="page.css" />',
    ...(styles === undefined ? [] : [`<link rel="stylesheet" href="${styles}.css" />`]),
    ...names.map((name) => `<link rel="modulepreload" href="${name}.js" />`),
    `<script type="module" src="${script}.js"></script>`,
  ].join("\n    ");
}

/** Relative to the page, since a proxy may serve the agent below a path of its own. */
function linksOf(shown: PageParts): string {
  const links = pages.filter(({ linked }) => linked);
  return links
    .map((page) => `<a href=".${page.path}"${page === shown ? ' aria-current="page"' : ""}>${page.title}</a>`)
    .join("");
}

/** The words for states, as a module of the page. */
const wordsScript: PageFile = {
  type: "text/javascript; charset=utf-8",
  body: Buffer.from(`export const words = ${JSON.stringify(words)};\n`),
};
