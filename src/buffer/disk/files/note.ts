// What the log thread wants said in the log of the agent.

export interface Note {
  readonly level: "info" | "warn" | "error";
  readonly fields: Readonly<Record<string, string | number | undefined>>;
  readonly message: string;
}
export type Notes = (level: Note["level"], fields: Note["fields"], message: string) => void;
