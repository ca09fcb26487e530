import { expect, test } from "bun:test";
import { bodyRepeats, REMEMBERED_BODIES } from "../../src/flows/contents/body-repeats.ts";

const body = (at: number): Uint8Array => Buffer.from(`body ${at}`);

test("a body has been seen from its second time on, by the project that sent it", () => {
  const repeats = bodyRepeats();
  expect([1, 2, 3].map(() => repeats.seen("snd_a", body(1)))).toEqual([false, true, true]);
  expect([repeats.seen("snd_b", body(1)), repeats.seen("snd_a", body(2))]).toEqual([false, false]);
});

test("so many bodies are remembered at most: each that comes takes the place of one", () => {
  const repeats = bodyRepeats();
  const bodies = Array.from({ length: 4 * REMEMBERED_BODIES }, (_, at) => body(at));
  for (const one of bodies) expect(repeats.seen("snd_a", one)).toBe(false);
  // Newest first: what is found anew has stood, what is not takes a place that is looked at no more.
  const found = bodies.toReversed().filter((one) => repeats.seen("snd_a", one)).length;
  expect(found).toBeGreaterThan(0);
  expect(found).toBeLessThanOrEqual(REMEMBERED_BODIES);
});
