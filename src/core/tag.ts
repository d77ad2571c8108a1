/** Index of a configured tag within its source. */
export type TagId = number & { readonly [tagId]: true };
declare const tagId: unique symbol;

/** What a tag's template captured: levels of a topic, the name of a browsed node. */
export type Captures = Readonly<Record<string, string>>;
