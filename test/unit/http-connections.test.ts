import { expect, test } from "bun:test";
import { Connections, KNOWN_MS, MAX_KNOWN } from "../../src/http/connections.ts";
import { manualClock } from "../support/manual-clock.ts";

const at = (port: number, address = "192.0.2.1") => ({ address, port });

test("the first request over a connection is new, and the next ones are not", () => {
  const connections = new Connections(manualClock(0));
  const asked = [at(1), at(1), at(2), at(1, "192.0.2.2"), at(2), at(1)];
  expect(asked.map((peer) => connections.isNew(peer))).toEqual([true, false, true, true, false, false]);
});

test("a connection is known for a time behind its last request, and forgotten after twice that", () => {
  const clock = manualClock(0);
  const connections = new Connections(clock);
  connections.isNew(at(1));
  connections.isNew(at(2));
  for (let times = 0; times < 5; times++) {
    clock.advance(KNOWN_MS);
    expect(connections.isNew(at(1))).toBe(false);
  }
  expect(connections.isNew(at(2))).toBe(true);
});

test("a clock that is put back makes none of them known for ever", () => {
  const clock = manualClock(10 * KNOWN_MS);
  const connections = new Connections(clock);
  connections.isNew(at(1));
  clock.advance(-5 * KNOWN_MS);
  connections.isNew(at(2));
  clock.advance(KNOWN_MS);
  connections.isNew(at(2));
  expect(connections.isNew(at(1))).toBe(true);
});

test("of very many the first are forgotten, and are new again", () => {
  const connections = new Connections(manualClock(0));
  for (let port = 0; port < 2 * MAX_KNOWN; port++) expect(connections.isNew(at(port))).toBe(true);
  expect(connections.isNew(at(2 * MAX_KNOWN - 1))).toBe(false);
  expect(connections.isNew(at(2 * MAX_KNOWN))).toBe(true);
  expect(connections.isNew(at(0))).toBe(true);
});
