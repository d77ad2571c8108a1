// vitest runs this before each file of end-to-end tests.
import { inject } from "vitest";
import type {} from "./built-program.ts";

process.env["TAGFERRY_PROGRAM"] = inject("program");
