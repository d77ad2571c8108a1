// The `Retry-After` header: seconds or a date, as RFC 9110 has it, and what servers make of it.

const mostMs = 3_600_000;

/** Milliseconds to wait, from 0 to an hour; undefined when the header is missing or makes no sense. */
export function retryAfterMs(header: string | string[] | undefined, nowMs: number): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim();
  if (text === undefined || text === "") return undefined;
  if (/^\d+$/.test(text)) return Math.min(mostMs, Number(text) * 1_000);
  // Date.parse reads "-1" as a date; a real one begins with the name of the day.
  const at = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.min(mostMs, Math.max(0, at - nowMs));
}
