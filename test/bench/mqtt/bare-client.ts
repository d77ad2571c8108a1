// The bare library as a client: acknowledges at once, counts, and stores nothing. Argument: a `Load` as JSON.
import { connectAsync } from "mqtt";
import { type Load, Meter } from "./load.ts";

const { host, port, username, password, qos, total }: Load = JSON.parse(process.argv[2] ?? "");
const client = await connectAsync(`mqtt://${host}:${port}`, {
  username,
  password,
  protocolVersion: 5,
  properties: { receiveMaximum: 2_000 },
});
await client.subscribeAsync("plant/#", { qos });
const meter = new Meter(total);
console.log("ready");
await new Promise<void>((resolve) => {
  client.on("message", () => {
    if (meter.count(1)) resolve();
  });
});
console.log(JSON.stringify(meter.usage()));
client.end(true);
