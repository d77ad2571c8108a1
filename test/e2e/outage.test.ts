// The service is unavailable during a run. The long form is outage.peer.test.ts.
import { test } from "vitest";
import { outageDrill } from "./outage-drill.ts";

test("an outage of 3 s loses nothing, and afterwards no method is called more than once a second", () =>
  outageDrill(3));
