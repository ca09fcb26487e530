import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { deregisterInstance, registerInstance, thisHost } from "../../src/flows/sweep/instance.ts";
import { type Instance, insertInstance, listInstances } from "../../src/store/instances.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { manualClock } from "../support/manual-clock.ts";

/** Milliseconds: programs start within seconds where the machine has much else to do. */
setDefaultTimeout(90_000);

let database: TestDatabase;
beforeEach(async () => {
  database = await testDatabase();
});
afterEach(() => database.remove());

/** A number that no process of this machine has. */
const ELSEWHERE = 2 ** 22 + 1;

test("a process that beats on another machine of the same name is not taken for dead at a start", async () => {
  const clock = manualClock();
  const { db } = database;
  // Two machines made of one image, or two containers on the host's network: one host name, two sets of pids.
  const other: Instance = {
    ...{
      id: newId("ins", clock.now()),
      host: thisHost().replace(/.$/, (last) => (last === "0" ? "1" : "0")),
      pid: ELSEWHERE,
      heartbeatAt: clock.now(),
    },
  };
  await db.write([insertInstance(other)]);
  await registerInstance({ db, clock }, process.pid);
  expect((await listInstances(db)).map(({ id }) => id)).toContain(other.id);
});

test("a start buries the dead of this machine alone: those whose number nobody has, or has become its own", async () => {
  const clock = manualClock();
  const { db } = database;
  const host = thisHost();
  // In a container every process has the number of the one before it. The first process of a machine runs always.
  for (const [id, pid] of Object.entries({ ins_gone: ELSEWHERE, ins_before: process.pid, ins_runs: 1 }))
    await db.write([insertInstance({ id, host, pid, heartbeatAt: clock.now() })]);
  const self = await registerInstance({ db, clock }, process.pid);
  const listed = async () => (await listInstances(db)).map(({ id }) => id).sort();
  expect(await listed()).toEqual([self.id, "ins_runs"].sort());
  await deregisterInstance({ db, clock }, self);
  expect(await listed()).toEqual(["ins_runs"]);
});
