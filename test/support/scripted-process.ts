// Runs the script of `storage-script.ts` on a real disk and kills itself before one of its disk calls. Before that, it
// writes down what was promised so far. `node scripted-process.ts FOLDER CALL FILE`; prints the number of calls if it
// ends normally.
import { writeFileSync, writeSync } from "node:fs";
import { nodeDisk } from "../../src/buffer/disk/files/disk.ts";
import { emptyRun, runScript } from "./storage-script.ts";
import { watched } from "./watched-disk.ts";

const [folder = "", call = "0", file = ""] = process.argv.slice(2);
const run = emptyRun();
let calls = 0;
const disk = watched(nodeDisk(), () => {
  if (++calls !== Number(call)) return;
  writeFileSync(
    file,
    JSON.stringify({ ...run, errors: [] }, (_, value) => (value instanceof Set ? [...value] : value)),
  );
  process.kill(process.pid, "SIGKILL");
});
runScript(disk, run, 0, { folder });
writeSync(1, String(calls));
