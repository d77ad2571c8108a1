// Finds the SunSpec map of a device, walks its models, and returns their points as tags with scale factors.
import type { BrowsedNode } from "../../../core/commissioning.ts";
import { protocolLimit } from "../config/pdu.ts";
import type { Table } from "../config/value-type.ts";
import { type SunspecModel, type SunspecPoint, sunspecModels, sunspecRegisters } from "./sunspec-models.ts";

/** Reads `count` words from `start`. Undefined if the device does not return them. */
export type ReadWords = (table: Table, start: number, count: number) => Promise<readonly number[] | undefined>;

export interface FoundModel {
  readonly id: number;
  /** Address of the register that holds the id. */
  readonly start: number;
  /** Registers after id and length. */
  readonly length: number;
}

/** Standard base addresses, and those of vendors that are off by one. */
const bases = [40_000, 0, 50_000, 39_999, 1, 49_999];
/** `SunS` in ASCII. */
const [sun, s] = [0x5375, 0x6e53];
const endModel = 0xff_ff;
/** More than any device has; ends an invalid map. */
const mostModels = 64;

/** SunSpec models in the holding registers, in order. Empty if there is no map. */
export async function findSunspec(read: ReadWords): Promise<readonly FoundModel[]> {
  for (const base of bases) {
    const [first, second] = (await read("hr", base, 2)) ?? [];
    if (first === sun && second === s) return await walk(read, base + 2);
  }
  return [];
}

async function walk(read: ReadWords, from: number): Promise<readonly FoundModel[]> {
  const models: FoundModel[] = [];
  for (let start = from; models.length < mostModels && start < 65_535; ) {
    const [id, length] = (await read("hr", start, 2)) ?? [];
    if (id === undefined || length === undefined || id === endModel) break;
    models.push({ id, start, length });
    start += 2 + length;
  }
  return models;
}

/** The model and a tag for each of its known points within `length`. */
export function sunspecNodes({ id, start, length }: FoundModel, unit: number): readonly BrowsedNode[] {
  const model = sunspecModels[id];
  const title: BrowsedNode = {
    address: `hr:${start}`,
    name: `SunSpec ${id}${model ? `: ${model.name}` : ""}, ${length} registers`,
    depth: 0,
    signal: {},
    tag: { unit, at: `hr:${start} u16` },
  };
  if (!model) return [title];
  const own = model.points.filter(({ offset, type }) => offset + sunspecRegisters[type] <= length + 2);
  return [title, ...[...own, ...repeated(model, length)].map((point) => pointNode(point, start, unit))];
}

/** Repeats the points of a group to the end of the model, omitting those too far from their scale factor. */
function repeated({ group }: SunspecModel, length: number): readonly SunspecPoint[] {
  if (!group) return [];
  const { name, offset, size, points } = group;
  const times = Math.max(0, Math.floor((length + 2 - offset) / size));
  return Array.from({ length: times }, (_, i) =>
    points.map((point) => ({
      ...point,
      name: `${name}${i + 1}.${point.name}`,
      offset: offset + i * size + point.offset,
    })),
  )
    .flat()
    .filter((point) => point.offset + sunspecRegisters[point.type] - (point.scale ?? point.offset) <= protocolLimit.hr);
}

function pointNode(
  { name, offset, type, scale, unit: engUnit }: SunspecPoint,
  start: number,
  unit: number,
): BrowsedNode {
  const at = `hr:${start + offset} ${type === "acc32" ? "u32" : type}`;
  return {
    address: at,
    name,
    depth: 1,
    signal: { name, ...(engUnit === undefined ? {} : { engUnit }) },
    tag: {
      unit,
      at,
      ...(scale === undefined ? {} : { scaleFactor: `hr:${start + scale}` }),
      nullValues: type === "acc32" ? [0] : "sunspec",
    },
  };
}
