// What a program is given in a run.

/** What there is to read. */
export interface Plant {
  readonly mqtt?: { readonly port: number; readonly username: string; readonly password: string };
  readonly modbus?: { readonly urls: readonly string[]; readonly registers: number; readonly everySeconds: number };
  readonly opcua?: { readonly url: string; readonly items: number; readonly everySeconds: number };
  /** Points that a program may have to hold while the sink is down. */
  readonly backlog: number;
}

export interface Setting {
  readonly plant: Plant;
  /** Base address. */
  readonly sinkUrl: string;
  /** Configuration, log and caches; not measured. */
  readonly home: string;
  /** What the program must remember; on the measured device. */
  readonly data: string;
}
