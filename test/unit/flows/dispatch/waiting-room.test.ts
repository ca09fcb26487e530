import { expect, test } from "bun:test";
import { WaitingRoom } from "../../../../src/flows/dispatch/waiting-room.ts";
import { chanceOf } from "../../../support/chance.ts";

const PLACES = 1000;

/** Messages by project and stream, and the room that they take. */
function openRoom() {
  const room = new WaitingRoom(() => PLACES);
  const sizes = new Map<string, number>();
  let waiting = 0;
  const offer = (senderId: string, domain: string, low: boolean): boolean => {
    const key = `${senderId} ${domain} ${low}`;
    const size = sizes.get(key) ?? 0;
    if (!room.hasRoom(senderId, size, low)) return false;
    sizes.set(key, size + 1);
    room.add(senderId);
    waiting++;
    return true;
  };
  return { offer, waiting: () => waiting };
}

test("a reset finds room although a campaign of its project to many domains has filled all that it may", () => {
  const { offer, waiting } = openRoom();
  for (let nth = 0; nth < 5000; nth++) offer("A", `d${nth % 50}.test`, true);
  expect(waiting()).toBeGreaterThan(PLACES / 2);
  expect(offer("A", "d0.test", true)).toBe(false);
  expect(offer("A", "d0.test", false)).toBe(true);
  expect(offer("B", "d0.test", true)).toBe(true);
});

test("whatever mix has filled the room, a further project finds a place, and no more than all are taken", () => {
  for (let seed = 1; seed <= 50; seed++) {
    const chance = chanceOf(seed);
    const { offer, waiting } = openRoom();
    for (let nth = 0; nth < 4000; nth++)
      offer(`P${chance.below(5)}`, `d${chance.below(20)}.test`, chance.happens(0.5));
    expect(waiting()).toBeLessThan(PLACES);
    expect(offer("another", "d0.test", true)).toBe(true);
  }
});
