type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Drops undefined members, for objects that leave out what is unknown. */
export function defined<T extends object>(members: T): Defined<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<T>; // the rest
}
