// Devices for the bench, in a process of their own: `node devices.ts 100` tells its parent their URLs.
import { modbusDevice } from "../../support/modbus-device.ts";

const devices = await Promise.all(Array.from({ length: Number(process.argv[2]) }, () => modbusDevice()));
for (const device of devices) device.unit(1).set("hr", 0, [...Array(1_000).keys()]);
process.send?.(devices.map((device) => device.url));
process.on("disconnect", () => process.exit());
