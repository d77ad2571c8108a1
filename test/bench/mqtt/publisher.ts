// Publishes 60-byte JSON messages evenly paced, in a process of its own. Arguments: URL, user, password, messages a
// second, topics, seconds, QoS.
import { connectAsync } from "mqtt";

const [url = "", username = "", password = "", rate = "10000", topics = "1000", seconds = "10", qos = "1"] =
  process.argv.slice(2);
const client = await connectAsync(url, { username, password });
const total = Number(rate) * Number(seconds);
const begin = performance.now();
let sent = 0;
const timer = setInterval(() => {
  const due = Math.min(total, Math.floor(((performance.now() - begin) / 1_000) * Number(rate)));
  for (; sent < due; sent++) {
    const payload = `{"v":${sent},"ts":${Date.now()},"unit":"degC"}`.padEnd(60);
    client.publish(`plant/line${sent % 7}/machine${sent % Number(topics)}/temp`, payload, { qos: qos === "0" ? 0 : 1 });
  }
  if (sent < total) return;
  clearInterval(timer);
  client.end();
}, 5);
