// Why a file that the configuration or a command names cannot be read.
import { reasonOf } from "../../core/errors.ts";
import { codeOf } from "../values/error-code.ts";

export function fileProblem(error: unknown): string {
  const code = codeOf(error);
  switch (code) {
    case "ENOENT":
      return "there is no such file";
    case "EACCES":
    case "EPERM":
      return "no permission";
    case "EISDIR":
      return "it is a folder";
    case "ENOTDIR":
      return "a part of its path is not a folder";
    default:
      return reasonOf(error);
  }
}
