// The first import of each file that begins a thread: when they are loaded, libraries look whether text may become code.
import { forbidCodeFromText } from "./code-from-text.ts";

forbidCodeFromText();
