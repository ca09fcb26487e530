import type { Clock } from "../../src/core/time/clock.ts";
import { Lane } from "../../src/flows/lanes/lane.ts";
import { Lanes } from "../../src/flows/lanes/lanes.ts";
import type { ProviderLimits } from "../../src/flows/lanes/providers.ts";
import type { Db } from "../../src/store/engine/client.ts";

const USUAL: ProviderLimits = { connections: 5, messages: 500, rate: 0 };

/** Lanes of a process that has no database to read. */
export function testLanes(clock: Clock, usual: Partial<ProviderLimits> = {}): Lanes {
  const db = { all: async () => [], write: async () => [] } as unknown as Db;
  return new Lanes({
    clock,
    db,
    instanceId: "ins_test",
    usual: { ...USUAL, ...usual },
    overrides: new Map(),
  });
}

/** A lane that is no provider's. */
export function testLane(clock: Clock, name: string, limits: Partial<ProviderLimits> = {}): Lane {
  return new Lane({ clock, instanceId: "ins_test" }, name, null, { ...USUAL, ...limits });
}
