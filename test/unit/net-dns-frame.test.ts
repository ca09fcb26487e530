import { expect, test } from "bun:test";
import { type Answer, encode } from "dns-packet";
import { MAX_RECORDS } from "../../src/net/dns/frame.ts";
import { decodeAnswer } from "../../src/net/dns/wire.ts";

const ID = 7;
const QUESTION = { name: "a.test", type: "A" } as const;

/** An answer with so many addresses, and as many more beside it. */
function answer(answers: number, additionals = 0): Buffer {
  const record: Answer = { name: QUESTION.name, type: "A", ttl: 60, data: "192.0.2.1" };
  return encode({
    type: "response",
    id: ID,
    questions: [QUESTION],
    answers: new Array<Answer>(answers).fill(record),
    additionals: new Array<Answer>(additionals).fill(record),
  });
}

test("an answer of the greatest number of records is read, one more is not, whatever section it is in", () => {
  expect(decodeAnswer(answer(MAX_RECORDS), QUESTION, ID)?.answers).toHaveLength(MAX_RECORDS);
  expect(decodeAnswer(answer(MAX_RECORDS + 1), QUESTION, ID)).toBeNull();
  expect(decodeAnswer(answer(1, MAX_RECORDS), QUESTION, ID)).toBeNull();
});
