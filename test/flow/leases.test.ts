import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { BEAT_MS, Heartbeat, LEASE_MS } from "../../src/flows/sweep/instance.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { type Instance, insertInstance, listInstances } from "../../src/store/installation/instances.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";

const HOUR_MS = 3_600_000;
const BEATS_IN_LEASE = LEASE_MS / BEAT_MS;

let database: TestDatabase;
let clock: ManualClock;

beforeEach(async () => {
  database = await testDatabase();
  clock = manualClock();
});
afterEach(() => database.remove());

async function process(host: string): Promise<{ instance: Instance; heartbeat: Heartbeat }> {
  const now = clock.now();
  const instance: Instance = { id: newId("ins", now), host, pid: 1, heartbeatAt: now, masterKeys: "" };
  await database.db.write([insertInstance(instance)]);
  return { instance, heartbeat: new Heartbeat({ db: database.db, clock }, instance) };
}

async function listed(): Promise<string[]> {
  return (await listInstances(database.db)).map(({ host }) => host).sort();
}

async function beats(count: number, ...heartbeats: Heartbeat[]): Promise<void> {
  for (let beat = 0; beat < count; beat++) {
    clock.advance(BEAT_MS);
    for (const heartbeat of heartbeats) await heartbeat.turn();
  }
}

describe("a process", () => {
  test("a process with heartbeats is never declared dead", async () => {
    const [here, there] = [await process("here"), await process("there")];
    await beats(4 * BEATS_IN_LEASE, here.heartbeat, there.heartbeat);
    expect(await listed()).toEqual(["here", "there"]);
  });

  test("a process without heartbeats is declared dead after the lease, and no sooner", async () => {
    const [here, there] = [await process("here"), await process("there")];
    await beats(2, here.heartbeat, there.heartbeat);
    const silentSince = clock.now();
    while ((await listed()).length === 2) await beats(1, here.heartbeat);
    expect(clock.now() - silentSince).toBeGreaterThanOrEqual(LEASE_MS);
    expect(clock.now() - silentSince).toBeLessThanOrEqual(LEASE_MS + 2 * BEAT_MS);
    expect(await listed()).toEqual(["here"]);
  });

  test.each([
    ["forward", HOUR_MS],
    ["back", -HOUR_MS],
  ])("a process is not declared dead when a clock is set %s by an hour", async (_, step) => {
    const [here, there] = [await process("here"), await process("there")];
    await beats(2, here.heartbeat, there.heartbeat);
    clock.step(step);
    await beats(BEATS_IN_LEASE, here.heartbeat, there.heartbeat);
    expect(await listed()).toEqual(["here", "there"]);
  });

  test("a process that is dead is declared so after the lease even if the clock was set back by an hour", async () => {
    const [here, there] = [await process("here"), await process("there")];
    await beats(2, here.heartbeat, there.heartbeat);
    clock.step(-HOUR_MS);
    await beats(BEATS_IN_LEASE + 1, here.heartbeat);
    expect(await listed()).toEqual(["here"]);
  });

  test("a process that sends a heartbeat while another is about to declare it dead is kept", async () => {
    const [here, there] = [await process("here"), await process("there")];
    await beats(BEATS_IN_LEASE, here.heartbeat, there.heartbeat);
    const { db } = database;
    let beaten = 0;
    // Our process is delayed between its read of the list and its write: by a lock, or because it was stopped.
    const late: Pick<Db, "all" | "write"> = {
      all: (sql, args) => db.all(sql, args),
      async write(statements) {
        if (statements.length > 1 && beaten++ === 0) await there.heartbeat.turn();
        return db.write(statements);
      },
    };
    const slow = new Heartbeat({ db: late as Db, clock }, here.instance);
    await beats(BEATS_IN_LEASE + 1, slow);
    expect(beaten).toBe(1);
    expect(await listed()).toEqual(["here", "there"]);
  });

  test("a process that was declared dead continues under the same name", async () => {
    const [here, there] = [await process("here"), await process("there")];
    await beats(BEATS_IN_LEASE + 1, here.heartbeat);
    expect(await listed()).toEqual(["here"]);
    await there.heartbeat.turn();
    expect(await listed()).toEqual(["here", "there"]);
  });
});
