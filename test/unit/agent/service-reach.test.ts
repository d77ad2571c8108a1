// In a cluster, what an agent knows about its way to the service.
import { expect, test } from "vitest";
import { serviceReach } from "../../../src/agent/upkeep/cluster-terms.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

test("the way to the service is examined only while delivery fails or another agent does not reach it", async () => {
  const clock = new ManualClock();
  const state = { isFailing: false, isAsked: false, isThere: true, attempts: 0 };
  const parts = {
    isFailing: () => state.isFailing,
    isAsked: () => state.isAsked,
    connects: async () => {
      state.attempts++;
      return state.isThere;
    },
  };
  await using reach = serviceReach(parts, testRuntime({ clock }));
  const later = async (seconds: number) => {
    for (let i = 0; i < seconds; i++) await clock.advance(1_000);
    return reach.reaches;
  };

  expect([await later(60), state.attempts]).toEqual([undefined, 0]);
  state.isAsked = true;
  expect(await later(11)).toBe(undefined);
  expect(await later(5)).toBe(true);
  state.isAsked = false;
  expect(await later(6)).toBe(undefined);
  // Delivery fails: this agent says so after three failures, and goes on examining without a term until one succeeds.
  [state.isFailing, state.isThere] = [true, false];
  expect(await later(16)).toBe(false);
  state.isFailing = false;
  expect(await later(60)).toBe(false);
  state.isThere = true;
  expect(await later(6)).toBe(undefined);
  const { attempts } = state;
  expect([await later(60), state.attempts]).toEqual([undefined, attempts]);
});
