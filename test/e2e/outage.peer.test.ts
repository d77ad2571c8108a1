// The long form of outage.test.ts.
import { test } from "vitest";
import { outageDrill } from "./outage-drill.ts";

test("an outage of 30 s loses nothing, and afterwards no method is called more than once a second", () =>
  outageDrill(30));
