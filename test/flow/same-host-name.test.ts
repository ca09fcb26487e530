import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { newId } from "../../src/core/ids.ts";
import { deregisterInstance, registerInstance, thisHost } from "../../src/flows/sweep/instance.ts";
import { type Instance, insertInstance, listInstances } from "../../src/store/installation/instances.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { manualClock } from "../support/manual-clock.ts";
import { until } from "../support/poll.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

let database: TestDatabase;
beforeEach(async () => {
  database = await testDatabase();
});
afterEach(() => database.remove());

/** A process id that no process of this machine has. */
const ELSEWHERE = 2 ** 22 + 1;

test("a process with heartbeats on another machine of the same name is not declared dead at a start", async () => {
  const clock = manualClock();
  const { db } = database;
  // Two machines made of one image, or two containers on the host's network: one host name, two sets of process
  // ids.
  const other: Instance = {
    id: newId("ins", clock.now()),
    host: thisHost().replace(/.$/, (last) => (last === "0" ? "1" : "0")),
    pid: ELSEWHERE,
    heartbeatAt: clock.now(),
    masterKeys: "",
  };
  await db.write([insertInstance(other)]);
  await registerInstance({ db, clock }, process.pid);
  expect((await listInstances(db)).map(({ id }) => id)).toContain(other.id);
});

test("a start frees only dead processes of this machine: those whose id is unused, or is its own now", async () => {
  const clock = manualClock();
  const { db } = database;
  const host = thisHost();
  // In a container every process has the id of the one before it. The first process of a machine always runs.
  for (const [id, pid] of Object.entries({ ins_gone: ELSEWHERE, ins_before: process.pid, ins_runs: 1 }))
    await db.write([insertInstance({ id, host, pid, heartbeatAt: clock.now(), masterKeys: "" })]);
  const self = await registerInstance({ db, clock }, process.pid);
  const listed = async () => (await listInstances(db)).map(({ id }) => id).sort();
  expect(await listed()).toEqual([self.id, "ins_runs"].sort());
  await deregisterInstance({ db, clock }, self);
  expect(await listed()).toEqual(["ins_runs"]);
});

/** A killed process whose parent does not read its exit code. */
async function startZombie(): Promise<{ pid: number; reap(): Promise<void> }> {
  const parent = spawn("sh", ["-c", "sleep 600 & echo $!; exec cat"], { stdio: ["pipe", "pipe", "ignore"] });
  const ended = once(parent, "exit");
  const lines = createInterface({ input: parent.stdout })[Symbol.asyncIterator]();
  const pid = Number((await lines.next()).value);
  // Once `cat` answers, the shell is gone, which would read the exit code of its child.
  parent.stdin.write("ready\n");
  await lines.next();
  process.kill(pid, "SIGKILL");
  await until(() => /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
  return {
    pid,
    async reap() {
      parent.stdin.end();
      await ended;
    },
  };
}

test.skipIf(!existsSync("/proc/self/stat"))(
  "a start frees a killed process that is still a zombie",
  async () => {
    const clock = manualClock();
    const { db } = database;
    const zombie = await startZombie();
    try {
      await db.write([
        insertInstance({
          id: "ins_zombie",
          host: thisHost(),
          pid: zombie.pid,
          heartbeatAt: clock.now(),
          masterKeys: "",
        }),
      ]);
      const self = await registerInstance({ db, clock }, process.pid);
      expect((await listInstances(db)).map(({ id }) => id)).toEqual([self.id]);
    } finally {
      await zombie.reap();
    }
  },
);
