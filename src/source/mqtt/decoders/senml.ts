// SenML in JSON (RFC 8428), resolved: base fields are merged into the records, times are absolute.
import { z } from "zod";
import type { EpochMicros } from "../../../core/point.ts";
import { jsonDocument } from "./json.ts";
import { PayloadError } from "./payload-error.ts";

const record = z.object({
  bn: z.string().optional(),
  bt: z.number().optional(),
  bv: z.number().optional(),
  n: z.string().optional(),
  t: z.number().optional(),
  v: z.number().optional(),
  vb: z.boolean().optional(),
  vs: z.string().optional(),
});

/** Below this a time is relative to now, in seconds (4.5.3). */
const relative = 2 ** 28;

/** Records of `name`, `value` and `time` in seconds since 1970. Those without a value are left out. */
export function senmlRecords(payload: Buffer, arrival: EpochMicros): unknown {
  const pack = z.array(record).safeParse(jsonDocument(payload));
  if (!pack.success) throw new PayloadError(`is not SenML: ${z.prettifyError(pack.error).split("\n")[0] ?? ""}`);
  let name = "";
  let time = 0;
  let base = 0;
  return pack.data.flatMap(({ bn, bt, bv, n = "", t = 0, v, vb, vs }) => {
    name = bn ?? name;
    time = bt ?? time;
    base = bv ?? base;
    const value = v === undefined ? (vb ?? vs) : v + base;
    const at = time + t;
    return value === undefined ? [] : [{ name: name + n, value, time: at < relative ? arrival / 1e6 + at : at }];
  });
}
