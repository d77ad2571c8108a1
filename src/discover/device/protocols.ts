// Texts about protocols for help, questions and messages, generated from the drivers.
import { joinNames } from "../../config/nodes/suggest.ts";
import type { KnownCertificate, TrustStore } from "../../core/commissioning.ts";
import type { Driver } from "../../core/driver.ts";
import { drivers } from "../../source/registry.ts";

export interface ProtocolTexts {
  protocolsWith(member: keyof Driver): string;
  protocolsOf(option: string): string;
  devicesWith(member: keyof Driver): string;
  addressExamples(): readonly string[];
}

/** The protocols of all drivers with `member`: `MQTT, Modbus and OPC UA`. */
export function protocolsWith(member: keyof Driver): string {
  return named("protocol", "and", (driver) => driver[member] !== undefined);
}

export function protocolsOf(option: string): string {
  return named("protocol", "and", (driver) => hasOption(driver, option));
}

/** The device kinds of all drivers with `member`: `an MQTT broker, a Modbus device or an OPC UA server`. */
export function devicesWith(member: keyof Driver): string {
  return named("device", "or", (driver) => driver[member] !== undefined);
}

function named(part: "protocol" | "device", word: "and" | "or", wanted: (driver: Driver) => boolean): string {
  return joinNames(
    drivers.filter(wanted).map(({ example }) => example[part]),
    word,
  );
}

export function hasOption({ schema }: Driver, option: string): boolean {
  return option in schema.shape;
}

/** Example addresses of each protocol, with its name if the scheme does not show it. */
export function addressExamples(): readonly string[] {
  return drivers.flatMap(({ example: { protocol, addresses } }) =>
    addresses.map((address, i) => {
      const [word = ""] = protocol.toLowerCase().split(" ");
      return i > 0 || address.slice(0, address.indexOf(":")).includes(word) ? address : `${address} (${protocol})`;
    }),
  );
}

/** The driver for the scheme of this address. Undefined: none. */
export function driverOfAddress(address: string): Driver | undefined {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(address)?.[1]?.toLowerCase();
  return drivers.find(({ schemes }) => scheme !== undefined && schemes?.includes(scheme));
}

/** The address with the TLS variant of its scheme (`s` appended). Undefined: the driver has none. */
export function addressOverTls(address: string): string | undefined {
  const secure = address.replace(":", "s:");
  return driverOfAddress(address) && driverOfAddress(secure) === driverOfAddress(address) ? secure : undefined;
}

export function certificateStores(): readonly TrustStore[] {
  return drivers.flatMap(({ certificates }) => certificates ?? []);
}

export async function knownCertificates(dataDir: string): Promise<readonly KnownCertificate[]> {
  return (await Promise.all(certificateStores().map((store) => store.list(dataDir)))).flat();
}
