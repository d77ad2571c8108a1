// Stopping an uploader while a request is in flight.
import { expect, test } from "vitest";
import type { InputId } from "../../src/core/point.ts";
import { eventually } from "../support/eventually.ts";
import { ScriptedService } from "../support/scripted-service.ts";
import { uploading } from "../support/uploading.ts";

test.for(["never", "half of it"])(
  "a request that is cut short by stopping is no failure of the service: answered %s",
  async (answered) => {
    await using service = await ScriptedService.open();
    service.otherwise = ({ response }) => {
      if (answered === "never") return;
      response.writeHead(200, { "content-length": 100 });
      response.write("{");
    };
    const upload = await uploading({ url: service.url, speed: 50 });
    upload.catalog.describe("b" as InputId, {});
    upload.reader.append({ a: [[1e15, 1]] });
    await eventually(() => service.seen.length === 2);
    await upload.stop();
    expect(upload.runtime.lines).toEqual([]);
    expect(upload.uploader.status()).toMatchObject({ requests: { started: 1, failed: 0 } });
    expect(upload.uploader.status().lastError).toBeUndefined();
    expect(upload.reader.settled).toEqual([]);
  },
);
