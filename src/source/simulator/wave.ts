// Values that look like a plant: pure functions of the time, and two that remember where they were.
import { unreachable } from "../../core/unreachable.ts";

export const waves = ["sine", "square", "triangle", "sawtooth", "ramp", "randomWalk", "counter", "constant"] as const;
export type Wave = (typeof waves)[number];

export interface WaveOptions {
  readonly wave: Wave;
  /** Milliseconds. */
  readonly period: number;
  readonly min: number;
  /** Undefined: 100, for a counter without end. */
  readonly max?: number | undefined;
  /** How much a counter adds to each reading. */
  readonly step: number;
  /** Digits after the decimal point. */
  readonly decimals: number;
}

/** Gives the value at `epochMs`. Called once for each reading: a counter counts calls, a random walk takes a step. */
export type Generator = (epochMs: number) => number;

export function generator(options: WaveOptions, random: () => number): Generator {
  const { wave, period, min, step, decimals } = options;
  const max = options.max ?? (wave === "counter" ? Number.POSITIVE_INFINITY : Math.max(100, min));
  const span = max - min;
  const factor = 10 ** decimals;
  const round = (value: number) => Math.round(value * factor) / factor;
  /** Share of the period that has passed, 0 to below 1. The same for every agent, since it starts at the epoch. */
  const phase = (epochMs: number) => (epochMs % period) / period;
  switch (wave) {
    case "sine":
      return (at) => round(min + (span * (1 + Math.sin(2 * Math.PI * phase(at)))) / 2);
    case "square":
      return (at) => round(phase(at) < 0.5 ? max : min);
    case "triangle":
      return (at) => round(min + span * (1 - Math.abs(1 - 2 * phase(at))));
    case "sawtooth":
    case "ramp":
      return (at) => round(min + span * phase(at));
    case "constant":
      return () => round(options.max ?? min);
    case "randomWalk": {
      let value = min + span / 2;
      return () => {
        value += (random() - 0.5) * 0.05 * span;
        value = Math.min(max, Math.max(min, value));
        return round(value);
      };
    }
    case "counter": {
      let next = min;
      return () => {
        const value = next;
        next = value + step > max ? min : value + step;
        return round(value);
      };
    }
    default:
      return unreachable(wave);
  }
}
