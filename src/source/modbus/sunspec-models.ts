// The points of the SunSpec models that inverters and meters have most. Data only.
//
// Offsets count from the register of the model's id, as in the published tables; `scale` is the offset of the scale factor.

export interface SunspecPoint {
  readonly name: string;
  readonly offset: number;
  readonly type: "i16" | "u16" | "u32" | "f32";
  readonly scale?: number;
  readonly unit?: string;
}

export interface SunspecModel {
  readonly name: string;
  readonly points: readonly SunspecPoint[];
}

/** `name offset` pairs that share type, scale factor and unit. */
function run(
  type: SunspecPoint["type"],
  points: Readonly<Record<string, number>>,
  rest: { readonly scale?: number; readonly unit?: string } = {},
): readonly SunspecPoint[] {
  return Object.entries(points).map(([name, offset]) => ({ name, offset, type, ...rest }));
}

const inverter: readonly SunspecPoint[] = [
  ...run("u16", { A: 2, AphA: 3, AphB: 4, AphC: 5 }, { scale: 6, unit: "A" }),
  ...run("u16", { PPVphAB: 7, PPVphBC: 8, PPVphCA: 9, PhVphA: 10, PhVphB: 11, PhVphC: 12 }, { scale: 13, unit: "V" }),
  ...run("i16", { W: 14 }, { scale: 15, unit: "W" }),
  ...run("u16", { Hz: 16 }, { scale: 17, unit: "Hz" }),
  ...run("i16", { VA: 18 }, { scale: 19, unit: "VA" }),
  ...run("i16", { VAr: 20 }, { scale: 21, unit: "var" }),
  ...run("i16", { PF: 22 }, { scale: 23, unit: "%" }),
  ...run("u32", { WH: 24 }, { scale: 26, unit: "Wh" }),
  ...run("u16", { DCA: 27 }, { scale: 28, unit: "A" }),
  ...run("u16", { DCV: 29 }, { scale: 30, unit: "V" }),
  ...run("i16", { DCW: 31 }, { scale: 32, unit: "W" }),
  ...run("i16", { TmpCab: 33, TmpSnk: 34, TmpTrns: 35, TmpOt: 36 }, { scale: 37, unit: "°C" }),
  ...run("u16", { St: 38, StVnd: 39 }),
];

const floatInverter: readonly SunspecPoint[] = [
  ...run("f32", { A: 2, AphA: 4, AphB: 6, AphC: 8 }, { unit: "A" }),
  ...run("f32", { PPVphAB: 10, PPVphBC: 12, PPVphCA: 14, PhVphA: 16, PhVphB: 18, PhVphC: 20 }, { unit: "V" }),
  ...run("f32", { W: 22 }, { unit: "W" }),
  ...run("f32", { Hz: 24 }, { unit: "Hz" }),
  ...run("f32", { VA: 26 }, { unit: "VA" }),
  ...run("f32", { VAr: 28 }, { unit: "var" }),
  ...run("f32", { PF: 30 }, { unit: "%" }),
  ...run("f32", { WH: 32 }, { unit: "Wh" }),
  ...run("f32", { DCA: 34 }, { unit: "A" }),
  ...run("f32", { DCV: 36 }, { unit: "V" }),
  ...run("f32", { DCW: 38 }, { unit: "W" }),
  ...run("f32", { TmpCab: 40, TmpSnk: 42, TmpTrns: 44, TmpOt: 46 }, { unit: "°C" }),
  ...run("u16", { St: 48, StVnd: 49 }),
];

const meter: readonly SunspecPoint[] = [
  ...run("i16", { A: 2, AphA: 3, AphB: 4, AphC: 5 }, { scale: 6, unit: "A" }),
  ...run(
    "i16",
    { PhV: 7, PhVphA: 8, PhVphB: 9, PhVphC: 10, PPV: 11, PPVphAB: 12, PPVphBC: 13, PPVphCA: 14 },
    { scale: 15, unit: "V" },
  ),
  ...run("i16", { Hz: 16 }, { scale: 17, unit: "Hz" }),
  ...run("i16", { W: 18, WphA: 19, WphB: 20, WphC: 21 }, { scale: 22, unit: "W" }),
  ...run("i16", { VA: 23, VAphA: 24, VAphB: 25, VAphC: 26 }, { scale: 27, unit: "VA" }),
  ...run("i16", { VAR: 28, VARphA: 29, VARphB: 30, VARphC: 31 }, { scale: 32, unit: "var" }),
  ...run("i16", { PF: 33, PFphA: 34, PFphB: 35, PFphC: 36 }, { scale: 37, unit: "%" }),
  ...run("u32", { TotWhExp: 38, TotWhExpPhA: 40, TotWhExpPhB: 42, TotWhExpPhC: 44 }, { scale: 54, unit: "Wh" }),
  ...run("u32", { TotWhImp: 46, TotWhImpPhA: 48, TotWhImpPhB: 50, TotWhImpPhC: 52 }, { scale: 54, unit: "Wh" }),
];

/** By id. A model that is not here is listed by its id and length. */
export const sunspecModels: Readonly<Record<number, SunspecModel>> = {
  101: { name: "single-phase inverter", points: inverter },
  102: { name: "split-phase inverter", points: inverter },
  103: { name: "three-phase inverter", points: inverter },
  111: { name: "single-phase inverter, floats", points: floatInverter },
  112: { name: "split-phase inverter, floats", points: floatInverter },
  113: { name: "three-phase inverter, floats", points: floatInverter },
  201: { name: "single-phase meter", points: meter },
  202: { name: "split-phase meter", points: meter },
  203: { name: "three-phase wye meter", points: meter },
  204: { name: "three-phase delta meter", points: meter },
};
