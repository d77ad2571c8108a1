// HTTP responses with security headers.
import type { ServerResponse } from "node:http";

const headers = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
};

export function answerJson(response: ServerResponse, status: number, body: unknown): void {
  end(response, status, "application/json; charset=utf-8", JSON.stringify(body));
}

export function end(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.setHeader("content-length", Buffer.byteLength(body));
  start(response, status, type);
  // For HEAD, Node omits the body.
  response.end(body);
}

export function start(response: ServerResponse, status: number, type: string): void {
  response.writeHead(status, { ...headers, "content-type": type });
}
