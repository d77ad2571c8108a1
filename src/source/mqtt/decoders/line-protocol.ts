// Line protocol: `measurement,tag=x field=1,other=2i 1767225600000000000`.

import { parseDecimal } from "./decimal.ts";
import { PayloadError, sample } from "./payload-error.ts";
import { utf8 } from "./utf8.ts";

/** One record a field: `measurement`, `tags`, `field`, `value` and `time` in nanoseconds since 1970 where it is given. */
export function lineProtocolRecords(payload: Buffer): unknown {
  return utf8(payload)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"))
    .flatMap(recordsOfLine);
}

function recordsOfLine(line: string): readonly object[] {
  const [key, fields, time] = splitOutside(line, " ");
  const [measurement, ...tags] = splitOutside(key ?? "", ",");
  if (!measurement || !fields) throw new PayloadError(`is not line protocol: ${sample(Buffer.from(line))}`);
  const named = Object.fromEntries(tags.map((tag) => pair(tag, line)));
  return splitOutside(fields, ",").map((each) => {
    const [field, text] = pair(each, line);
    return {
      measurement: unescaped(measurement),
      tags: named,
      field,
      value: fieldValue(text, line),
      ...(time !== undefined && { time }),
    };
  });
}

/** Splits at a sign that is neither escaped nor inside quotes. */
function splitOutside(text: string, sign: string): string[] {
  const parts: string[] = [];
  let part = "";
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const letter = text.charAt(i);
    if (letter === "\\") part += letter + text.charAt(++i);
    else if (letter === sign && !quoted) {
      parts.push(part);
      part = "";
    } else {
      if (letter === '"') quoted = !quoted;
      part += letter;
    }
  }
  return [...parts, part];
}

function pair(text: string, line: string): [string, string] {
  const [name, ...value] = splitOutside(text, "=");
  if (!name || value.length === 0) throw new PayloadError(`is not line protocol: ${sample(Buffer.from(line))}`);
  return [unescaped(name), unescaped(value.join("="))];
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, "$1");
}

function fieldValue(text: string, line: string): number | bigint | boolean | string {
  if (text.startsWith('"')) return text.slice(1, -1);
  if (/^(t|true)$/i.test(text)) return true;
  if (/^(f|false)$/i.test(text)) return false;
  const value = parseDecimal(text.replace(/[iu]$/, ""));
  if (value === undefined) throw new PayloadError(`is not line protocol: ${sample(Buffer.from(line))}`);
  return value;
}
