import { expect, test } from "bun:test";
import { type Departed, Room, type RoomLimits } from "../../src/flows/dispatch/room.ts";
import { HANG_MS } from "../../src/flows/send/outcome.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

/** A room for two mails under way, both taken, and which of them were cut. */
function fullRoom(sizes: readonly [number, number], limits: Partial<RoomLimits> = {}) {
  const room = new Room({ desk: 10, underWay: 2, bytes: 1000 * MIB, ...limits });
  const cut: number[] = [];
  for (const [at, bytes] of sizes.entries()) {
    const mail: Departed = { bytes, since: 0, cut: () => cut.push(at) };
    room.depart(mail);
  }
  return { room, cut };
}

test("a mail that hangs is ended where all room is taken, at its time and not before", () => {
  const { room, cut } = fullRoom([1, 1]);
  room.clear(HANG_MS - 1);
  expect(cut).toEqual([]);
  room.clear(HANG_MS + 1);
  expect(cut).toEqual([0]);
});

test("a big mail has the time that its octets take at 256 KiB a second", () => {
  const { room, cut } = fullRoom([26 * MIB, 25 * MIB]);
  room.clear(HANG_MS + 95_000);
  expect(cut).toEqual([]);
  // 26 MiB take 104 s and 25 MiB 100 s: the later one is past its time first.
  room.clear(HANG_MS + 101_000);
  expect(cut).toEqual([1]);
});

test("one that is being ended is not ended again, and its place counts as taken until it is free", () => {
  const { room, cut } = fullRoom([1, 1]);
  room.clear(HANG_MS + 1);
  room.clear(HANG_MS + 2);
  room.clear(HANG_MS + 3);
  expect(cut).toEqual([0, 1]);
  expect(room.isFree()).toBe(false);
});

test("a clock that was put back has the wait of a mail begin anew", () => {
  const { room, cut } = fullRoom([1, 1]);
  room.clear(-86_400_000);
  room.clear(-86_400_000 + HANG_MS + 1);
  expect(cut).toEqual([0]);
});

test("no more mails are ended than make room for the octets of the next one", () => {
  const { room, cut } = fullRoom([200 * KIB, 200 * KIB], { underWay: 10, bytes: 500 * KIB });
  room.clear(HANG_MS + 1_000);
  expect(cut).toEqual([0]);
});

test("behind a mail larger than the whole room the next one may still be taken up, by itself", () => {
  const room = new Room({ desk: 10, underWay: 10, bytes: 25 * MIB });
  const mail: Departed = { bytes: 30 * MIB, since: 0, cut: () => undefined };
  room.depart(mail);
  expect(room.isFree()).toBe(false);
  room.arrive(mail);
  expect(room.isFree()).toBe(true);
});

test("a mail that is told twice to have arrived leaves its octets once", () => {
  const room = new Room({ desk: 10, underWay: 10, bytes: 500 * KIB });
  const mails = [0, 1, 2].map((): Departed => ({ bytes: 200 * KIB, since: 0, cut: () => undefined }));
  const [first] = mails;
  for (const mail of mails) room.depart(mail);
  if (first !== undefined) for (let times = 0; times < 2; times++) room.arrive(first);
  expect(room.isFree()).toBe(false);
});

test("octets that a large mail lacks are taken from large ones that hang, no more than it needs, and from no small one", () => {
  const room = new Room({ desk: 10, underWay: 10, bytes: 1000 * MIB });
  const cut: number[] = [];
  for (const [at, bytes] of [KIB, 10 * MIB, 10 * MIB, 10 * MIB].entries())
    room.depart({ bytes, since: 0, cut: () => cut.push(at) });
  room.clear(HANG_MS + 60_000);
  room.clear(HANG_MS, 11 * MIB);
  expect(cut).toEqual([]);
  room.clear(HANG_MS + 60_000, 11 * MIB);
  expect(cut).toEqual([1, 2]);
});

test("so they are where the desk is full", () => {
  const room = new Room({ desk: 1, underWay: 10, bytes: 1000 * MIB });
  const cut: number[] = [];
  room.sitDown();
  room.depart({ bytes: MIB, since: 0, cut: () => cut.push(0) });
  room.clear(HANG_MS + 60_000);
  expect(cut).toEqual([]);
  room.clear(HANG_MS + 60_000, 1);
  expect(cut).toEqual([0]);
});

test("what large mails are does not keep small ones from the rest of the room", () => {
  const room = new Room({ desk: 10, underWay: 10, bytes: 10 * MIB });
  room.depart({ bytes: 9 * MIB, since: 0, cut: () => undefined });
  expect(room.isFree()).toBe(true);
  for (let mail = 0; mail < 3; mail++) room.depart({ bytes: 200 * KIB, since: 0, cut: () => undefined });
  room.sitDown();
  expect(room.isFree()).toBe(false);
});
