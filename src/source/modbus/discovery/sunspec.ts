// Finds the SunSpec map of a device, walks its models, and returns their points as tags with scale factors.
import type { BrowsedNode } from "../../../core/commissioning.ts";
import { protocolLimit } from "../config/pdu.ts";
import type { Table } from "../config/registers.ts";

/** Reads `count` words from `start`. Undefined if the device does not return them. */
export type ReadWords = (table: Table, start: number, count: number) => Promise<readonly number[] | undefined>;

interface FoundModel {
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

// The most common points of SunSpec models for inverters, meters and batteries. Offsets count from the register of the
// model's id, as in the published tables. `scale` is the offset of the scale factor.

interface SunspecPoint {
  readonly name: string;
  readonly offset: number;
  /** `acc32`: a counter; 0 means "not implemented". */
  readonly type: "i16" | "u16" | "u32" | "u64" | "acc32" | "f32";
  readonly scale?: number | undefined;
  readonly unit?: string | undefined;
}

interface SunspecModel {
  readonly name: string;
  readonly points: readonly SunspecPoint[];
  /** A group that repeats to the end of the model. Point offsets count from its start, scale factors from the id. */
  readonly group?: {
    readonly name: string;
    readonly offset: number;
    readonly size: number;
    readonly points: readonly SunspecPoint[];
  };
}

export const sunspecRegisters = { i16: 1, u16: 1, u32: 2, u64: 4, acc32: 2, f32: 2 } as const satisfies Record<
  SunspecPoint["type"],
  number
>;

/** Consecutive points. `names` are separated by spaces; `W*ph` expands to sum and phases: `W WphA WphB WphC`. */
type Row = readonly [offset: number, type: SunspecPoint["type"], names: string, unit?: string, scale?: number];

function points(...rows: readonly Row[]): readonly SunspecPoint[] {
  return rows.flatMap(([offset, type, names, unit, scale]) =>
    names
      .split(" ")
      .flatMap(sumAndPhases)
      .map((name, i) => ({ name, offset: offset + i * sunspecRegisters[type], type, scale, unit: unit || undefined })),
  );
}

function sumAndPhases(name: string): readonly string[] {
  const [sum = "", phase] = name.split("*");
  return phase === undefined ? [name] : [sum, ...["A", "B", "C"].map((letter) => `${sum}${phase}${letter}`)];
}

/** The same points as consecutive floats without scale factors. Points without a scale are states. */
function floats(integers: readonly SunspecPoint[]): readonly SunspecPoint[] {
  let end = 2;
  return integers.map(({ name, scale, unit }) => {
    const type = scale === undefined ? "u16" : "f32";
    const offset = end;
    end += sunspecRegisters[type];
    return { name, offset, type, unit };
  });
}

const currents = "A AphA AphB AphC";
const lineVoltages = "PPVphAB PPVphBC PPVphCA";
const starVoltages = "PhVphA PhVphB PhVphC";

const inverter = points(
  [2, "u16", currents, "A", 6],
  [7, "u16", `${lineVoltages} ${starVoltages}`, "V", 13],
  [14, "i16", "W", "W", 15],
  [16, "u16", "Hz", "Hz", 17],
  [18, "i16", "VA", "VA", 19],
  [20, "i16", "VAr", "var", 21],
  [22, "i16", "PF", "%", 23],
  [24, "acc32", "WH", "Wh", 26],
  [27, "u16", "DCA", "A", 28],
  [29, "u16", "DCV", "V", 30],
  [31, "i16", "DCW", "W", 32],
  [33, "i16", "TmpCab TmpSnk TmpTrns TmpOt", "°C", 37],
  [38, "u16", "St StVnd"],
);

/** `between` and `phase`: the table's names of voltages between phases, and of phases of reactive energy. */
function meter(between: string, phase = "Ph", powerFactor = "%"): readonly SunspecPoint[] {
  const reactive = ["ImpQ1", "ImpQ2", "ExpQ3", "ExpQ4"].map((quadrant) => `TotVArh${quadrant}*${phase}`);
  return points(
    [2, "i16", currents, "A", 6],
    [7, "i16", `PhV ${starVoltages} PPV ${between}`, "V", 15],
    [16, "i16", "Hz", "Hz", 17],
    [18, "i16", "W*ph", "W", 22],
    [23, "i16", "VA*ph", "VA", 27],
    [28, "i16", "VAR*ph", "var", 32],
    [33, "i16", "PF*ph", powerFactor, 37],
    [38, "acc32", "TotWhExp*Ph TotWhImp*Ph", "Wh", 54],
    [55, "acc32", "TotVAhExp*Ph TotVAhImp*Ph", "VAh", 71],
    [72, "acc32", reactive.join(" "), "varh", 104],
  );
}

const phaseMeter = meter("PhVphAB PhVphBC PhVphCA");
const floatInverter = floats(inverter);
const floatMeter = floats(meter(lineVoltages, "ph", ""));

const storage = points(
  [8, "u16", "ChaState", "%", 22],
  [9, "u16", "StorAval", "Ah", 23],
  [10, "u16", "InBatV", "V", 24],
  [11, "u16", "ChaSt"],
);

const module = points(
  [9, "u16", "DCA", "A", 2],
  [10, "u16", "DCV", "V", 3],
  [11, "u16", "DCW", "W", 4],
  [12, "acc32", "DCWH", "Wh", 5],
  [16, "i16", "Tmp", "°C"],
  [17, "u16", "DCSt"],
);

/** Model 701 repeats the same points for the whole device and for each `line`. */
function derMeasure(line: string, at: number, voltages: string, energies: number): readonly SunspecPoint[] {
  return points(
    [at, "i16", `W${line}`, "W", 116],
    [at + 1, "i16", `VA${line}`, "VA", 118],
    [at + 2, "i16", `Var${line}`, "var", 119],
    [at + 3, "i16", `PF${line}`, "", 117],
    [at + 4, "i16", `A${line}`, "A", 113],
    [at + 5, "u16", voltages, "V", 114],
    [energies, "u64", `TotWhInj${line} TotWhAbs${line}`, "Wh", 120],
    [energies + 8, "u64", `TotVarhInj${line} TotVarhAbs${line}`, "varh", 121],
  );
}

const der = [
  ...points([3, "u16", "St InvSt ConnSt"]),
  ...derMeasure("", 10, "LLV LNV", 19),
  ...derMeasure("L1", 41, "VL1L2 VL1", 48),
  ...derMeasure("L2", 64, "VL2L3 VL2", 71),
  ...derMeasure("L3", 87, "VL3L1 VL3", 94),
  ...points([17, "u32", "Hz", "Hz", 115], [35, "i16", "TmpAmb TmpCab TmpSnk TmpTrns TmpSw TmpOt", "°C", 122]),
];

const derStorage = points([2, "u16", "WHRtg WHAvail", "Wh", 7], [4, "u16", "SoC SoH", "%", 8], [6, "u16", "Sta"]);

const battery = points(
  [11, "u16", "SoC", "%", 56],
  [12, "u16", "DoD", "%", 57],
  [13, "u16", "SoH", "%", 58],
  [14, "u32", "NCyc"],
  [16, "u16", "ChaSt"],
  [22, "u16", "State StateVnd"],
  [34, "u16", "V", "V", 59],
  [37, "u16", "CellVMax", "V", 60],
  [40, "u16", "CellVMin", "V", 60],
  [43, "u16", "CellVAvg", "V", 60],
  [44, "i16", "A", "A", 61],
  [47, "i16", "W", "W", 63],
);

/** Models by id. Others are listed by id and length only. */
export const sunspecModels: Readonly<Record<number, SunspecModel>> = {
  101: { name: "single-phase inverter", points: inverter },
  102: { name: "split-phase inverter", points: inverter },
  103: { name: "three-phase inverter", points: inverter },
  111: { name: "single-phase inverter, floats", points: floatInverter },
  112: { name: "split-phase inverter, floats", points: floatInverter },
  113: { name: "three-phase inverter, floats", points: floatInverter },
  124: { name: "storage", points: storage },
  160: { name: "inverter inputs (MPPT)", points: [], group: { name: "module", offset: 10, size: 20, points: module } },
  201: { name: "single-phase meter", points: meter(lineVoltages) },
  202: { name: "split-phase meter", points: phaseMeter },
  203: { name: "three-phase wye meter", points: phaseMeter },
  204: { name: "three-phase delta meter", points: phaseMeter },
  211: { name: "single-phase meter, floats", points: floatMeter },
  212: { name: "split-phase meter, floats", points: floatMeter },
  213: { name: "three-phase wye meter, floats", points: floatMeter },
  214: { name: "three-phase delta meter, floats", points: floatMeter },
  701: { name: "measurements of a distributed resource", points: der },
  713: { name: "capacity of a storage", points: derStorage },
  802: { name: "battery", points: battery },
};
