// The points of the SunSpec models that inverters, meters and batteries have most. Data only.
//
// Offsets count from the register of the model's id, as in the published tables; `scale` is the offset of the scale factor.

export interface SunspecPoint {
  readonly name: string;
  readonly offset: number;
  /** `acc32`: a count that is 0 where there is none. */
  readonly type: "i16" | "u16" | "u32" | "u64" | "acc32" | "f32";
  readonly scale?: number;
  readonly unit?: string;
}

export interface SunspecModel {
  readonly name: string;
  readonly points: readonly SunspecPoint[];
  /** A group that comes as often as there is room for it. Offsets of its points count from its begin, of scale factors from the id. */
  readonly group?: {
    readonly name: string;
    readonly offset: number;
    readonly size: number;
    readonly points: readonly SunspecPoint[];
  };
}

/** Registers that a point of each type takes. */
export const sunspecRegisters = { i16: 1, u16: 1, u32: 2, u64: 4, acc32: 2, f32: 2 } as const satisfies Record<
  SunspecPoint["type"],
  number
>;

interface Shared {
  readonly scale?: number;
  readonly unit?: string;
}

/** Points one behind the other from `offset` on, which share type, scale factor and unit. */
function row(
  type: SunspecPoint["type"],
  offset: number,
  names: readonly string[],
  shared: Shared = {},
): readonly SunspecPoint[] {
  return names.map((name, i) => ({ name, offset: offset + i * sunspecRegisters[type], type, ...shared }));
}

/** The sum and the phases of a quantity. */
const phases = (name: string, phase = "phA") => [
  name,
  ...["A", "B", "C"].map((letter) => `${name}${phase.slice(0, -1)}${letter}`),
];
const lineVoltages = ["PPVphAB", "PPVphBC", "PPVphCA"];
const starVoltages = ["PhVphA", "PhVphB", "PhVphC"];
const currents = ["A", "AphA", "AphB", "AphC"];
const temperatures = ["TmpCab", "TmpSnk", "TmpTrns", "TmpOt"];

const inverter: readonly SunspecPoint[] = [
  ...row("u16", 2, currents, { scale: 6, unit: "A" }),
  ...row("u16", 7, [...lineVoltages, ...starVoltages], { scale: 13, unit: "V" }),
  ...row("i16", 14, ["W"], { scale: 15, unit: "W" }),
  ...row("u16", 16, ["Hz"], { scale: 17, unit: "Hz" }),
  ...row("i16", 18, ["VA"], { scale: 19, unit: "VA" }),
  ...row("i16", 20, ["VAr"], { scale: 21, unit: "var" }),
  ...row("i16", 22, ["PF"], { scale: 23, unit: "%" }),
  ...row("acc32", 24, ["WH"], { scale: 26, unit: "Wh" }),
  ...row("u16", 27, ["DCA"], { scale: 28, unit: "A" }),
  ...row("u16", 29, ["DCV"], { scale: 30, unit: "V" }),
  ...row("i16", 31, ["DCW"], { scale: 32, unit: "W" }),
  ...row("i16", 33, temperatures, { scale: 37, unit: "°C" }),
  ...row("u16", 38, ["St", "StVnd"]),
];

const floatInverter: readonly SunspecPoint[] = [
  ...row("f32", 2, currents, { unit: "A" }),
  ...row("f32", 10, [...lineVoltages, ...starVoltages], { unit: "V" }),
  ...row("f32", 22, ["W"], { unit: "W" }),
  ...row("f32", 24, ["Hz"], { unit: "Hz" }),
  ...row("f32", 26, ["VA"], { unit: "VA" }),
  ...row("f32", 28, ["VAr"], { unit: "var" }),
  ...row("f32", 30, ["PF"], { unit: "%" }),
  ...row("f32", 32, ["WH"], { unit: "Wh" }),
  ...row("f32", 34, ["DCA"], { unit: "A" }),
  ...row("f32", 36, ["DCV"], { unit: "V" }),
  ...row("f32", 38, ["DCW"], { unit: "W" }),
  ...row("f32", 40, temperatures, { unit: "°C" }),
  ...row("u16", 48, ["St", "StVnd"]),
];

/** `between`: what the published table of the model calls the voltages between phases. */
function meter(between: readonly string[]): readonly SunspecPoint[] {
  return [
    ...row("i16", 2, currents, { scale: 6, unit: "A" }),
    ...row("i16", 7, ["PhV", ...starVoltages, "PPV", ...between], { scale: 15, unit: "V" }),
    ...row("i16", 16, ["Hz"], { scale: 17, unit: "Hz" }),
    ...row("i16", 18, phases("W"), { scale: 22, unit: "W" }),
    ...row("i16", 23, phases("VA"), { scale: 27, unit: "VA" }),
    ...row("i16", 28, phases("VAR"), { scale: 32, unit: "var" }),
    ...row("i16", 33, phases("PF"), { scale: 37, unit: "%" }),
    ...row(
      "acc32",
      38,
      ["TotWhExp", "TotWhImp"].flatMap((name) => phases(name, "PhA")),
      { scale: 54, unit: "Wh" },
    ),
    ...row(
      "acc32",
      55,
      ["TotVAhExp", "TotVAhImp"].flatMap((name) => phases(name, "PhA")),
      { scale: 71, unit: "VAh" },
    ),
    ...row("acc32", 72, reactiveEnergies("PhA"), { scale: 104, unit: "varh" }),
  ];
}

function reactiveEnergies(phase: string): readonly string[] {
  return ["ImpQ1", "ImpQ2", "ExpQ3", "ExpQ4"].flatMap((quadrant) => phases(`TotVArh${quadrant}`, phase));
}

const floatMeter: readonly SunspecPoint[] = [
  ...row("f32", 2, currents, { unit: "A" }),
  ...row("f32", 10, ["PhV", ...starVoltages, "PPV", ...lineVoltages], { unit: "V" }),
  ...row("f32", 26, ["Hz"], { unit: "Hz" }),
  ...row("f32", 28, phases("W"), { unit: "W" }),
  ...row("f32", 36, phases("VA"), { unit: "VA" }),
  ...row("f32", 44, phases("VAR"), { unit: "var" }),
  ...row("f32", 52, phases("PF")),
  ...row(
    "f32",
    60,
    ["TotWhExp", "TotWhImp"].flatMap((name) => phases(name, "PhA")),
    { unit: "Wh" },
  ),
  ...row(
    "f32",
    76,
    ["TotVAhExp", "TotVAhImp"].flatMap((name) => phases(name, "PhA")),
    { unit: "VAh" },
  ),
  ...row("f32", 92, reactiveEnergies("phA"), { unit: "varh" }),
];

const storage: readonly SunspecPoint[] = [
  ...row("u16", 8, ["ChaState"], { scale: 22, unit: "%" }),
  ...row("u16", 9, ["StorAval"], { scale: 23, unit: "Ah" }),
  ...row("u16", 10, ["InBatV"], { scale: 24, unit: "V" }),
  ...row("u16", 11, ["ChaSt"]),
];

const trackers: SunspecModel = {
  name: "inverter inputs (MPPT)",
  points: [],
  group: {
    name: "module",
    offset: 10,
    size: 20,
    points: [
      ...row("u16", 9, ["DCA"], { scale: 2, unit: "A" }),
      ...row("u16", 10, ["DCV"], { scale: 3, unit: "V" }),
      ...row("u16", 11, ["DCW"], { scale: 4, unit: "W" }),
      ...row("acc32", 12, ["DCWH"], { scale: 5, unit: "Wh" }),
      ...row("i16", 16, ["Tmp"], { unit: "°C" }),
      ...row("u16", 17, ["DCSt"]),
    ],
  },
};

/** Model 701 has the same points for the whole device and for each of its lines. */
const derMeasure: readonly SunspecPoint[] = [
  ...row("u16", 3, ["St", "InvSt", "ConnSt"]),
  ...(
    [
      ["", 10],
      ["L1", 41],
      ["L2", 64],
      ["L3", 87],
    ] as const
  ).flatMap(([line, offset]) => [
    ...row("i16", offset, [`W${line}`], { scale: 116, unit: "W" }),
    ...row("i16", offset + 1, [`VA${line}`], { scale: 118, unit: "VA" }),
    ...row("i16", offset + 2, [`Var${line}`], { scale: 119, unit: "var" }),
    ...row("i16", offset + 3, [`PF${line}`], { scale: 117 }),
    ...row("i16", offset + 4, [`A${line}`], { scale: 113, unit: "A" }),
    ...row(
      "u16",
      offset + 5,
      { "": ["LLV", "LNV"], L1: ["VL1L2", "VL1"], L2: ["VL2L3", "VL2"], L3: ["VL3L1", "VL3"] }[line],
      { scale: 114, unit: "V" },
    ),
    ...row("u64", offset + (line === "" ? 9 : 7), [`TotWhInj${line}`, `TotWhAbs${line}`], { scale: 120, unit: "Wh" }),
    ...row("u64", offset + (line === "" ? 17 : 15), [`TotVarhInj${line}`, `TotVarhAbs${line}`], {
      scale: 121,
      unit: "varh",
    }),
  ]),
  ...row("u32", 17, ["Hz"], { scale: 115, unit: "Hz" }),
  ...row("i16", 35, ["TmpAmb", "TmpCab", "TmpSnk", "TmpTrns", "TmpSw", "TmpOt"], { scale: 122, unit: "°C" }),
];

const derStorage: readonly SunspecPoint[] = [
  ...row("u16", 2, ["WHRtg", "WHAvail"], { scale: 7, unit: "Wh" }),
  ...row("u16", 4, ["SoC", "SoH"], { scale: 8, unit: "%" }),
  ...row("u16", 6, ["Sta"]),
];

const battery: readonly SunspecPoint[] = [
  ...row("u16", 11, ["SoC"], { scale: 56, unit: "%" }),
  ...row("u16", 12, ["DoD"], { scale: 57, unit: "%" }),
  ...row("u16", 13, ["SoH"], { scale: 58, unit: "%" }),
  ...row("u32", 14, ["NCyc"]),
  ...row("u16", 16, ["ChaSt"]),
  ...row("u16", 22, ["State", "StateVnd"]),
  ...row("u16", 34, ["V"], { scale: 59, unit: "V" }),
  ...row("u16", 37, ["CellVMax"], { scale: 60, unit: "V" }),
  ...row("u16", 40, ["CellVMin"], { scale: 60, unit: "V" }),
  ...row("u16", 43, ["CellVAvg"], { scale: 60, unit: "V" }),
  ...row("i16", 44, ["A"], { scale: 61, unit: "A" }),
  ...row("i16", 47, ["W"], { scale: 63, unit: "W" }),
];

/** By id. A model that is not here is listed by its id and length. */
export const sunspecModels: Readonly<Record<number, SunspecModel>> = {
  101: { name: "single-phase inverter", points: inverter },
  102: { name: "split-phase inverter", points: inverter },
  103: { name: "three-phase inverter", points: inverter },
  111: { name: "single-phase inverter, floats", points: floatInverter },
  112: { name: "split-phase inverter, floats", points: floatInverter },
  113: { name: "three-phase inverter, floats", points: floatInverter },
  124: { name: "storage", points: storage },
  160: trackers,
  201: { name: "single-phase meter", points: meter(lineVoltages) },
  202: { name: "split-phase meter", points: meter(["PhVphAB", "PhVphBC", "PhVphCA"]) },
  203: { name: "three-phase wye meter", points: meter(["PhVphAB", "PhVphBC", "PhVphCA"]) },
  204: { name: "three-phase delta meter", points: meter(["PhVphAB", "PhVphBC", "PhVphCA"]) },
  211: { name: "single-phase meter, floats", points: floatMeter },
  212: { name: "split-phase meter, floats", points: floatMeter },
  213: { name: "three-phase wye meter, floats", points: floatMeter },
  214: { name: "three-phase delta meter, floats", points: floatMeter },
  701: { name: "measurements of a distributed resource", points: derMeasure },
  713: { name: "capacity of a storage", points: derStorage },
  802: { name: "battery", points: battery },
};
