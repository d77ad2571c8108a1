// Parses the URL of a device, gateway or bus into transport and frame format. Pure.

/** `mbap`: Modbus TCP; `rtu`: binary with CRC; `ascii`: hexadecimal with LRC. */
export type FrameFormat = "mbap" | "rtu" | "ascii";

export interface SerialLine {
  readonly path: string;
  readonly baudRate: number;
  readonly dataBits: 7 | 8;
  readonly parity: "none" | "even" | "odd";
  readonly stopBits: 1 | 2;
}

export type Endpoint = { readonly text: string; readonly frames: FrameFormat } & (
  | { readonly transport: "tcp" | "udp"; readonly host: string; readonly port: number }
  | { readonly transport: "serial"; readonly line: SerialLine }
);

const networkSchemes: Readonly<Record<string, { transport: "tcp" | "udp"; frames: FrameFormat }>> = {
  "tcp:": { transport: "tcp", frames: "mbap" },
  "modbus:": { transport: "tcp", frames: "mbap" },
  "udp:": { transport: "udp", frames: "mbap" },
  "rtu+tcp:": { transport: "tcp", frames: "rtu" },
  "ascii+tcp:": { transport: "tcp", frames: "ascii" },
};
const forms =
  "tcp://host:502, udp://host:502, rtu+tcp://host:port, ascii+tcp://host:port, rtu:///dev/ttyUSB0?baudRate=19200&parity=even or ascii:///dev/ttyUSB0";

/** The endpoint, or an error message. */
export function parseEndpoint(text: string): Endpoint | string {
  const url = URL.parse(text);
  if (!url) return `must be a URL such as ${forms}`;
  const network = networkSchemes[url.protocol];
  if (network) {
    if (url.hostname === "") return `names no host; write ${url.protocol}//host:502`;
    if (url.username || url.password) return "must not hold credentials: Modbus knows none";
    if (url.pathname !== "" && url.pathname !== "/")
      return `ends in ${url.pathname}, which has no meaning; the unit is said with unit:`;
    if (url.search !== "" || url.hash !== "") return `ends in ${url.search}${url.hash}, which has no meaning here`;
    const port = url.port === "" ? 502 : Number(url.port);
    if (port === 0) return "must name a port from 1 to 65535";
    return { text, ...network, host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port };
  }
  if (url.protocol === "rtu:" || url.protocol === "ascii:") return serial(text, url);
  return `starts with ${url.protocol}//, which is none of ${forms}`;
}

function serial(text: string, url: URL): Endpoint | string {
  const frames = url.protocol === "rtu:" ? "rtu" : "ascii";
  if (url.host !== "")
    return `names a host; for a serial line write ${frames}:///dev/ttyUSB0, for a gateway ${frames}+tcp://${url.host}`;
  if (url.pathname.length < 2) return `names no device; write ${frames}:///dev/ttyUSB0`;
  const settings = new Map(url.searchParams);
  const take = (name: string, standard: string) => {
    const value = settings.get(name) ?? standard;
    settings.delete(name);
    return value;
  };
  const baudRate = Number(take("baudRate", "9600"));
  if (!Number.isInteger(baudRate) || baudRate < 300 || baudRate > 921_600) return "baudRate must be from 300 to 921600";
  const parity = take("parity", "even");
  if (parity !== "none" && parity !== "even" && parity !== "odd") return "parity must be none, even or odd";
  const dataBits = Number(take("dataBits", frames === "rtu" ? "8" : "7"));
  if (dataBits !== 7 && dataBits !== 8) return "dataBits must be 7 or 8";
  if (dataBits === 7 && frames === "rtu") return "dataBits must be 8: RTU frames are binary";
  // The serial line specification requires 11 bits per character: without parity, a second stop bit.
  const stopBits = Number(take("stopBits", parity === "none" ? "2" : "1"));
  if (stopBits !== 1 && stopBits !== 2) return "stopBits must be 1 or 2";
  const [unknown] = settings.keys();
  if (unknown !== undefined)
    return `${unknown} is no setting of a serial line; they are baudRate, parity, dataBits and stopBits`;
  // A port of Windows has no folder: rtu:///COM3.
  const path = decodeURIComponent(url.pathname).replace(/^\/(?=COM\d+$)/, "");
  return { text, frames, transport: "serial", line: { path, baudRate, dataBits, parity, stopBits } };
}

/** Possible reasons if a device accepts requests but does not answer. */
export function silenceHint(url: Endpoint): string {
  if (url.transport === "serial") return "check unit, baud rate, parity and wiring; a wrong unit is silent";
  const place = placeOf(url);
  const unit = "check unit: a unit that is not there says nothing";
  if (url.frames !== "mbap") return `${unit}; where the gateway itself speaks Modbus TCP, write tcp://${place}`;
  if (url.transport === "udp") return `${unit}; many devices answer over TCP only: tcp://${place}`;
  return `${unit}; behind a device server that passes serial frames on, write rtu+tcp://${place}`;
}

/** Equal for two addresses that lead to one connection: a serial line, or host and port. */
export function connectionOf(url: Endpoint): string {
  return url.transport === "serial" ? url.line.path : `${url.host.toLowerCase()}:${url.port}`;
}

/** `host:port` as in URLs, or the path of a serial line. */
export function placeOf(url: Endpoint): string {
  if (url.transport === "serial") return url.line.path;
  return `${url.host.includes(":") ? `[${url.host}]` : url.host}:${url.port}`;
}
