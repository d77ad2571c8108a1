// The status page in a real Chromium, with all complaints of the browser.
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import type { WebOptions } from "../../../src/web/server.ts";
import { openWeb } from "../../../src/web/server.ts";
import { testRuntime } from "../../support/runtime.ts";

export interface OpenedPage extends AsyncDisposable {
  readonly page: Page;
  /** Complaints of the browser: errors, refused resources, requests to other hosts. */
  readonly complaints: readonly string[];
}

/** Resolves when the page shows the initial view. */
export async function openPage(
  browser: Browser,
  web: Partial<WebOptions> & Pick<WebOptions, "snapshot">,
  screen: BrowserContextOptions & { readonly path?: string } = {},
): Promise<OpenedPage> {
  const { path = "/", ...context } = screen;
  await using opening = new AsyncDisposableStack();
  const well = () => ({ ok: true });
  const defaults = { listen: { host: "127.0.0.1", port: 0 }, metrics: async () => "", health: well, ready: well };
  const opened = opening.use(await openWeb({ ...defaults, ...web }, testRuntime(), new AbortController().signal));
  const page = await browser.newPage({ viewport: { width: 1_200, height: 900 }, ...context });
  opening.defer(() => page.close());
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(opened.url)) complaints.push(`request: ${request.url()}`);
  });
  page.on("dialog", (dialog) => complaints.push(`dialog: ${dialog.message()}`));
  await page.goto(`${opened.url}${path}`);
  await page.locator("#overall.good, #overall.note, #overall.warn, #overall.bad").waitFor();
  const owned = opening.move();
  return { page, complaints, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
