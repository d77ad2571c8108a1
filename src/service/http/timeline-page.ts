// The page at `/`. For now it says what this is and how to call it.
import type { ServerResponse } from "node:http";
import { send } from "./http-answer.ts";

const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Local time-series service</title>
<h1>Local time-series service</h1>
<p>JSON-RPC 2.0 at <code>POST /v1/rpc</code>.</p>
</html>
`;

export function timelinePage(response: ServerResponse): void {
  send(
    response,
    200,
    { "content-type": "text/html; charset=utf-8", "content-security-policy": "default-src 'none'" },
    html,
  );
}
