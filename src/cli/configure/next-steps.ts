// What a person types after `tagferry init`.
import { packaged } from "../../config/file-schema.ts";
import { typedAs } from "../terminal/typed-as.ts";

/** One line. Where the package has its configuration the agent is the service manager's: started by hand, it would run as another user, with a data directory of its own. */
export function nextSteps(file: string, variables: Parameters<typeof typedAs>[0]): string {
  const typed = typedAs(variables);
  return file === packaged.config
    ? `next: ${typed} check --online, then systemctl start tagferry`
    : `next: ${typed} check -c ${file} --online, then ${typed} run -c ${file}`;
}
