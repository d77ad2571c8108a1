// Asks the agent in the same container whether it is well. Exit status 0: it is.
import { get } from "node:http";

const url = process.env.TAGFERRY_HEALTH_URL ?? "http://127.0.0.1:8421/healthz";
get(url, { timeout: 4_000 }, (response) => process.exit(response.statusCode === 200 ? 0 : 1))
  .on("timeout", () => process.exit(1))
  .on("error", () => process.exit(1));
