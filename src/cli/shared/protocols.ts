// What help, questions and messages say of protocols, taken from their drivers.
import { joinNames } from "../../config/suggest.ts";
import type { KnownCertificate, TrustStore } from "../../core/commissioning.ts";
import type { Driver } from "../../core/driver.ts";
import { drivers } from "../../source/registry.ts";

export interface ProtocolTexts {
  protocolsWith(member: keyof Driver): string;
  protocolsOf(option: string): string;
  devicesWith(member: keyof Driver): string;
  addressExamples(): readonly string[];
}

/** The protocols of the drivers that have `member`: `MQTT, Modbus and OPC UA`. */
export function protocolsWith(member: keyof Driver): string {
  return named("protocol", "and", (driver) => driver[member] !== undefined);
}

export function protocolsOf(option: string): string {
  return named("protocol", "and", (driver) => hasOption(driver, option));
}

/** What the drivers that have `member` read: `an MQTT broker, a Modbus device or an OPC UA server`. */
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

/** The address of each protocol, with its name where the scheme does not tell it. */
export function addressExamples(): readonly string[] {
  return drivers.flatMap(({ example: { protocol, addresses } }) =>
    addresses.map((address, i) => {
      const [word = ""] = protocol.toLowerCase().split(" ");
      return i > 0 || address.slice(0, address.indexOf(":")).includes(word) ? address : `${address} (${protocol})`;
    }),
  );
}

/** The driver that takes this address. Undefined: there is none. */
export function driverOfAddress(address: string): Driver | undefined {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(address)?.[1]?.toLowerCase();
  return drivers.find(({ schemes }) => scheme !== undefined && schemes?.includes(scheme));
}

/** The same address over TLS: its scheme with an `s` behind it. Undefined: its driver takes no such address. */
export function addressOverTls(address: string): string | undefined {
  const secure = address.replace(":", "s:");
  return driverOfAddress(address) && driverOfAddress(secure) === driverOfAddress(address) ? secure : undefined;
}

export function certificateStores(): readonly TrustStore[] {
  return drivers.flatMap(({ certificates }) => certificates ?? []);
}

/** The certificates of devices in the data directory of an agent. */
export async function knownCertificates(dataDir: string): Promise<readonly KnownCertificate[]> {
  return (await Promise.all(certificateStores().map((store) => store.list(dataDir)))).flat();
}
