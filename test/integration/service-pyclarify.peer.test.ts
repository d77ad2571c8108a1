import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { Secret } from "../../src/core/secret.ts";
import { pythonWith } from "../support/python.ts";
import { integration, testService } from "../support/service.ts";

test.for(["1.1", "1.2beta1", "1.2"])(
  "at %s the public Python client completes every method unchanged but for the address",
  {
    timeout: 120_000,
  },
  async (version) => {
    await using service = await testService({
      namespace: "clarify",
      throttle: "queue",
      integrations: [
        { id: integration, clientId: "client", clientSecret: new Secret("secret"), grants: ["admin", "platform"] },
      ],
    });
    const python = await pythonWith("pyclarify==0.7.0");
    const session = spawn(python, [join(import.meta.dirname, "../support/pyclarify-session.py"), version]);
    session.stdin.end(
      JSON.stringify({
        apiUrl: `${service.url}/`,
        integration,
        credentials: { type: "client-credentials", clientId: "client", clientSecret: "secret" },
      }),
    );
    const [output, complaint] = await Promise.all([text(session.stdout), text(session.stderr)]);
    expect(output, complaint).not.toBe("");
    const out = JSON.parse(output);

    expect(out.insert.signalsByInput).toMatchObject({ level: { created: true }, pump: { created: true } });
    const ids = [out.insert.signalsByInput.level.id, out.insert.signalsByInput.pump.id];
    expect(out.save_signals.signalsByInput).toMatchObject({
      level: { id: ids[0], created: false, updated: true },
      pump: { id: ids[1], created: false, updated: true },
    });
    expect(out.select_signals.data).toMatchObject([
      {
        id: ids[0],
        attributes: { name: "Level", input: "level", labels: { site: ["north"] }, gapDetection: "P0DT0H5M0.000000S" },
      },
      { id: ids[1], attributes: { name: "Pump", valueType: "enum" }, meta: { annotations: { "acme/line": "3" } } },
    ]);
    const items = ids.map((id: string) => out.publish_signals.itemsBySignal[id].id);
    expect(out.select_signals_published.data[0].relationships.item.data.id).toBe(items[0]);
    expect(out.select_signals_published.included.items.map(({ id }: { id: string }) => id)).toEqual(items);
    expect(out.select_items).toMatchObject({ meta: { total: 2 }, data: [{ id: items[0] }, { id: items[1] }] });
    expect(out).toMatchObject({
      filter_equal: ["Level"],
      filter_not_equal: ["Pump"],
      filter_regex: ["Level"],
      filter_since: ["Level", "Pump"],
      filter_both: ["Level", "Pump"],
      filter_none: [],
    });
    expect(out.data_frame.data.series).toEqual({ [items[0]]: [1, 2, 3, 4, null, 6], [items[1]]: [0, 1, 1, 0, 0, 1] });
    expect(out.data_frame_rollup.data.series[`${items[0]}_max`]).toEqual([4, 6]);
    expect(out.evaluate.data.series).toEqual({ level: [4, 6], on: [120, 300], both: [128, 312] });
    if (version === "1.1") expect(out.connect_signals).toBe("not at this version");
    else {
      const related = ({ data }: { data: { relationships: { item: { data: { id: string } | null } } }[] }) =>
        data.map(({ relationships }) => relationships.item.data?.id);
      expect(out.evaluate_groups.data.series).toEqual({ all: [5, 7] });
      expect([out.dry_run, out.after_dry_run, out.connect_signals, out.disconnect_signals].map(related)).toEqual([
        [items[0]],
        [undefined],
        [items[0]],
        [undefined],
      ]);
      expect(out.connect_signals).toMatchObject({ meta: { total: 1 }, included: { items: [{ id: items[0] }] } });
      expect(out.data_frame_connected.data.series).toEqual({ [items[0]]: [1, 2, 3, 40, 6, 8] });
      expect(out.data_frame_disconnected.data.series).toEqual({ [items[0]]: [1, 2, 3, 4, 6] });
      expect(out.no_such_item).toEqual({ item: ["no such item"] });
    }
    expect(out.refused).toMatchObject({ code: "-32602", params: { "query.filter.nothing": [expect.any(String)] } });
  },
);
