// The safeguards of all parts.
import type { Ablation } from "./ablation.ts";
import { bufferAblations } from "./buffer.ts";

export const ablations: readonly Ablation[] = [...bufferAblations];
