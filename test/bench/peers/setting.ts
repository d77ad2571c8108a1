// The inputs of a program in a run.

/** What there is to read. */
export interface Plant {
  readonly mqtt?: { readonly port: number; readonly username: string; readonly password: string };
  readonly modbus?: { readonly urls: readonly string[]; readonly registers: number; readonly everySeconds: number };
  readonly opcua?: { readonly url: string; readonly items: number; readonly everySeconds: number };
  /** The number of points that a program may have to hold while the sink is down. */
  readonly backlog: number;
}

export interface Setting {
  readonly plant: Plant;
  /** Base address. */
  readonly sinkUrl: string;
  /** Configuration, log and caches, on a device that is not measured. */
  readonly home: string;
  /** The program's state, on the measured device. */
  readonly data: string;
}
