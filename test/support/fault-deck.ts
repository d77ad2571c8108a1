// The order in which a drill applies its faults: every fault once before any is repeated, several at a time.

export interface DeckFault {
  readonly name: string;
  /** Faults of one part never overlap. */
  readonly part: string;
  /** Whether the fault ends the agent's process. */
  readonly ends?: boolean;
}

/** Shuffles the faults. Those that end an agent come early. */
export function shuffled<Fault extends DeckFault>(faults: readonly Fault[], random: () => number): readonly Fault[] {
  return faults
    .map((fault) => ({ fault, place: random() * (fault.ends ? 0.3 : 1) }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ fault }) => fault);
}

/** The first `most` faults of the deck, one per part. The part with the most faults left is always included. */
export function deal<Fault extends DeckFault>(deck: readonly Fault[], most: number): readonly Fault[] {
  const left = (part: string) => deck.filter((fault) => fault.part === part).length;
  const dealt = deck.toSorted((a, b) => left(b.part) - left(a.part)).slice(0, 1);
  for (const fault of deck)
    if (dealt.length < most && !dealt.some(({ part }) => part === fault.part)) dealt.push(fault);
  return dealt;
}
