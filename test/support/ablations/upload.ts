// The safeguards of the upload: nothing is settled that the service does not have or that is not written down, nothing is
// sent too fast, and trouble ends when it is over.
import type { Ablation } from "./ablation.ts";

const handler = "unit/upload/outcome-handler.test.ts";
const rejects = "unit/upload/rejects.test.ts";
const bisection = "unit/upload/bisection.test.ts";
const pacer = "unit/upload/pacer.test.ts";
const upload = "integration/upload.test.ts";

export const uploadAblations: readonly Ablation[] = [
  {
    safeguard: "writing a refused point down before it is settled",
    file: "upload/outcome-handler.ts",
    code: "    await rejects.add(refused, () => {\n      tally.rejected(count);\n      window.settleExtracted(column, true);\n    });",
    without: "    window.settleExtracted(column, true);\n    await rejects.add(refused, () => tally.rejected(count));",
    test: handler,
  },
  {
    safeguard: "sending again what is not known to be stored",
    file: "upload/outcome-handler.ts",
    code: "    return { waitMs, again: shipment };",
    without: "    return { waitMs, again: undefined };",
    test: handler,
  },
  {
    safeguard: "beginning the waits for the service anew when it answers",
    file: "upload/outcome-handler.ts",
    code: "    this.#backOff.reset();\n",
    without: "",
    test: handler,
  },
  {
    safeguard: "beginning the waits for credentials anew when they are taken",
    file: "upload/outcome-handler.ts",
    code: "    this.#holdOff.reset();\n",
    without: "",
    test: handler,
  },
  {
    safeguard: "the newest points first after an outage",
    file: "upload/outcome-handler.ts",
    code: "    this.#parts.loader.leadWithLive();\n",
    without: "",
    test: handler,
  },
  {
    safeguard: "smaller requests after one that was too large",
    file: "upload/outcome-handler.ts",
    code: "    await this.#parts.limit.tooLarge(frame.body.length);\n",
    without: "    this.#parts.limit.forget();\n",
    test: upload,
    name: "finds a request too large",
  },
  {
    safeguard: "the sync of refused points",
    file: "upload/rejects.ts",
    code: "      await file.datasync();\n",
    without: "",
    test: rejects,
  },
  {
    safeguard: "cutting off refused points that could not be synced",
    file: "upload/rejects.ts",
    code: "      await file.truncate(before).catch(() => {});\n",
    without: "",
    test: rejects,
  },
  {
    safeguard: "a line of its own behind one that was cut short",
    file: "upload/rejects.ts",
    code: "(await endsInLine(file, before)) ? text : `\\n${text}`",
    without: "text",
    test: rejects,
  },
  {
    safeguard: "the bound of the file of refused points",
    file: "upload/rejects.ts",
    code: "    if (size > mostBytes) await rename(this.#path, older(this.#path));\n",
    without: "",
    test: rejects,
  },
  {
    safeguard: "keeping refused points while they are sent again",
    file: "upload/reject-files.ts",
    code: "    await writeAtomically(this.#retry, textOf(lines));\n",
    without: "",
    test: rejects,
  },
  {
    safeguard: "the sync of what is refused again",
    file: "upload/reject-files.ts",
    code: "      await file.datasync();\n",
    without: "",
    test: rejects,
  },
  {
    safeguard: "both halves of what was refused are suspects",
    file: "upload/bisection.ts",
    code: "    this.#suspects.push(sibling, { portion: sooner, guilty: false, sibling });",
    without: "    this.#suspects.push({ portion: sooner, guilty: false, sibling });",
    test: bisection,
  },
  {
    safeguard: "giving up single points only",
    file: "upload/bisection.ts",
    code: "    if (suspect.portion.points === 1) {",
    without: "    if (suspect.portion.points <= 2) {",
    test: bisection,
  },
  {
    safeguard: "searching both halves of what is too large",
    file: "upload/bisection.ts",
    code: "for (const portion of [halves[1], halves[0]])",
    without: "for (const portion of [halves[0]])",
    test: bisection,
  },
  {
    safeguard: "keeping what is named in a part that was refused",
    file: "upload/bisection.ts",
    code: "      this.#suspects.pop();\n      this.#push(divided[0], divided[1]);\n    }\n    return undefined;",
    without:
      "      this.#suspects.pop();\n      this.#suspects.push({ portion: divided[1], guilty: false });\n    }\n    return undefined;",
    test: bisection,
  },
  {
    safeguard: "the breaker for refusals in a row",
    file: "upload/breaker.ts",
    code: "this.#inARow >= mostInARow || ",
    without: "",
    test: bisection,
  },
  {
    safeguard: "the breaker for points given up",
    file: "upload/breaker.ts",
    code: " || this.#refused > sampleSize * mostShare",
    without: "",
    test: bisection,
  },
  {
    safeguard: "the interval before the first request",
    file: "upload/pacer.ts",
    code: "this.#next = clock.monotonic() + this.#intervalMs;",
    without: "this.#next = clock.monotonic();",
    test: pacer,
  },
  {
    safeguard: "the interval between requests",
    file: "upload/pacer.ts",
    code: "      for (let wait = this.waitMs; wait > 0; wait = this.waitMs) await clock.sleep(wait, signal);\n",
    without: "",
    test: pacer,
  },
  {
    safeguard: "a request counts from its start",
    file: "upload/pacer.ts",
    code: "      this.#callAgainAt(start + this.#intervalMs);\n",
    without: "",
    test: pacer,
  },
  {
    safeguard: "allowing for a request that was late",
    file: "upload/pacer.ts",
    code: "start + this.#intervalMs + this.#allowance(this.#clock.monotonic() - start)",
    without: "start + this.#intervalMs",
    test: pacer,
  },
  {
    safeguard: "taking turns with other processes",
    file: "upload/pacer.ts",
    code: "      if (this.#turns.take()) {",
    without: "      if (true) {",
    test: pacer,
  },
];
