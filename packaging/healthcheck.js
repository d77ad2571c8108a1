// Asks the agent in the same container whether it is well. Exit status 0: it is.
import { get } from "node:http";

const url = process.env.TAGFERRY_HEALTH_URL ?? "http://127.0.0.1:8421/healthz";
process.exitCode = 1;
const request = get(url, { timeout: 4_000 }, (response) => {
  process.exitCode = response.statusCode === 200 ? 0 : 1;
  response.destroy();
});
request.on("timeout", () => request.destroy()).on("error", () => {});
