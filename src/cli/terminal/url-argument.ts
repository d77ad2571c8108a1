// The address of an agent as an argument of a command.
import { InvalidArgumentError } from "commander";

/** As it was typed. */
export function urlArgument(text: string): string {
  const protocol = URL.parse(text)?.protocol;
  if (protocol !== "http:" && protocol !== "https:")
    throw new InvalidArgumentError("expected the address of an agent, as in http://127.0.0.1:8421");
  return text;
}
