import { expect, test } from "vitest";
import { parseEndpoint } from "../../../../src/source/modbus/config/endpoint.ts";
import { characterMs, gapMs, inWords, wireMs } from "../../../../src/source/modbus/transport/serial-stream.ts";

test.each([
  ["tcp://10.0.0.5:1502", { transport: "tcp", frames: "mbap", host: "10.0.0.5", port: 1502 }],
  ["tcp://plc.plant", { transport: "tcp", frames: "mbap", host: "plc.plant", port: 502 }],
  ["modbus://plc", { transport: "tcp", frames: "mbap", host: "plc", port: 502 }],
  ["tcp://[fe80::1]:502/", { transport: "tcp", frames: "mbap", host: "fe80::1", port: 502 }],
  ["udp://h:5020", { transport: "udp", frames: "mbap", host: "h", port: 5020 }],
  ["rtu+tcp://h:4001", { transport: "tcp", frames: "rtu", host: "h", port: 4001 }],
  ["ascii+tcp://h:4001", { transport: "tcp", frames: "ascii", host: "h", port: 4001 }],
])("%s is understood", (text, endpoint) => {
  expect(parseEndpoint(text)).toEqual({ text, ...endpoint });
});

test("a serial line has the settings of the specification unless others are given", () => {
  const line = (text: string) => {
    const endpoint = parseEndpoint(text);
    return typeof endpoint === "object" && endpoint.transport === "serial" ? endpoint.line : endpoint;
  };
  const path = "/dev/ttyUSB0";
  expect(line(`rtu://${path}`)).toEqual({ path, baudRate: 9600, dataBits: 8, parity: "even", stopBits: 1 });
  expect(line(`rtu://${path}?parity=none&baudRate=19200`)).toEqual({
    path,
    baudRate: 19200,
    dataBits: 8,
    parity: "none",
    stopBits: 2,
  });
  expect(line(`rtu://${path}?parity=none&stopBits=1`)).toMatchObject({ stopBits: 1 });
  expect(line(`ascii://${path}`)).toMatchObject({ dataBits: 7, parity: "even" });
  expect(line("rtu:///COM3")).toMatchObject({ path: "COM3" });
  expect(line("rtu:///dev/serial/by-id/usb%201")).toMatchObject({ path: "/dev/serial/by-id/usb 1" });
});

test.each([
  ["10.0.0.5", "must be a URL such as tcp://host:502"],
  ["http://h", "starts with http://, which is none of"],
  ["tcp://", "names no host"],
  ["tcp://h:0", "a port from 1 to 65535"],
  ["tcp://user:pw@h", "must not hold credentials"],
  ["tcp://h/1", "ends in /1"],
  ["tcp://h?unit=1", "ends in ?unit=1"],
  ["rtu://dev/ttyUSB0", "for a serial line write rtu:///dev/ttyUSB0"],
  ["rtu:///", "names no device"],
  ["rtu:///dev/x?baudRate=fast", "baudRate must be from 300 to 921600"],
  ["rtu:///dev/x?baud=9600", "baud is no setting of a serial line"],
  ["rtu:///dev/x?parity=mark", "parity must be"],
  ["rtu:///dev/x?dataBits=7", "RTU frames are binary"],
  ["ascii:///dev/x?dataBits=9", "dataBits must be 7 or 8"],
  ["rtu:///dev/x?stopBits=3", "stopBits must be 1 or 2"],
])("%s is refused with: %s", (text, message) => {
  expect(parseEndpoint(text)).toContain(message);
});

test("eight registers at 9600 baud take 33 ms on the wire, and frames are 3.5 characters apart", () => {
  const endpoint = parseEndpoint("rtu:///dev/ttyUSB0");
  if (typeof endpoint === "string" || endpoint.transport !== "serial") throw new Error("no line");
  expect(characterMs(endpoint.line)).toBeCloseTo(1.146, 3);
  expect(wireMs({ unit: 1, table: "hr", start: 0, count: 8 }, endpoint)).toBeCloseTo(33.2, 1);
  expect(gapMs(endpoint.line)).toBeCloseTo(4.01, 2);
  expect(gapMs({ ...endpoint.line, baudRate: 115_200 })).toBe(1.75);
});

test("a port that Windows does not have, or that another program holds, is reported like that of Linux", () => {
  expect(inWords("Opening COM9: File not found")).toBe(
    inWords("Error: No such file or directory, cannot open /dev/ttyUSB9"),
  );
  expect(inWords("Opening /dev/ttyUSB9: Unknown error code 3")).toBe(inWords("Opening COM9: File not found"));
  expect(inWords("Opening COM3: Access denied")).toBe(
    inWords("Error Resource temporarily unavailable Cannot lock port"),
  );
  expect(inWords("Error: Permission denied, cannot open /dev/ttyUSB0")).toContain("dialout");
});
