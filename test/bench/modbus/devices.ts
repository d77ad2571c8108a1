// Devices for the benches in their own process: `node devices.ts 100` sends their URLs to its parent. With `moving`
// their registers drift, a tenth of them every second. To "sent" it answers with the number of registers read; to
// "stop" it first disconnects the devices.
import { modbusDevice } from "../../support/modbus-device.ts";

const devices = await Promise.all(Array.from({ length: Number(process.argv[2]) }, () => modbusDevice()));
for (const device of devices) device.unit(1).set("hr", 0, [...Array(1_000).keys()]);
let turn = 0;
if (process.argv[3] === "moving")
  setInterval(() => {
    turn++;
    for (const device of devices)
      for (let i = turn % 10; i < 1_000; i += 10) device.unit(1).set("hr", i, [(i + turn) % 65_536]);
  }, 1_000).unref();
process.on("message", async (question) => {
  if (question === "stop") {
    for (const device of devices) {
      const closed = device.listen(false);
      device.disconnect();
      await closed;
    }
  }
  process.send?.(devices.reduce((sum, { requests }) => requests.reduce((all, { count }) => all + count, sum), 0));
});
process.send?.(devices.map((device) => device.url));
process.on("disconnect", () => process.exit());
