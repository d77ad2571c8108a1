// Asks the agent in the same container whether it is well. Exit status 0: it is.
import * as http from "node:http";
import * as https from "node:https";

const url = new URL(process.env.TAGFERRY_HEALTH_URL ?? "http://127.0.0.1:8421/healthz");
const { get } = url.protocol === "https:" ? https : http;
process.exitCode = 1;
// With http.tls, the certificate is for the names by which others ask. Nothing secret is sent.
const request = get(url, { timeout: 4_000, rejectUnauthorized: false }, (response) => {
  process.exitCode = response.statusCode === 200 ? 0 : 1;
  response.destroy();
});
request.on("timeout", () => request.destroy()).on("error", () => {});
