import { expect, test } from "bun:test";
import { type Answer, encode } from "dns-packet";
import { MAX_NAME_STEPS, MAX_RECORDS } from "../../../../src/net/dns/packet-layout.ts";
import { decodeAnswer } from "../../../../src/net/dns/packet.ts";

const ID = 7;
const QUESTION = { name: "a.test", type: "A" } as const;

/** An answer with that many addresses, and as many additional records. */
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

test("an answer with the greatest number of records is read, and one more in any section is refused", () => {
  expect(decodeAnswer(answer(MAX_RECORDS), QUESTION, ID)?.answers).toHaveLength(MAX_RECORDS);
  expect(decodeAnswer(answer(MAX_RECORDS + 1), QUESTION, ID)).toBeNull();
  expect(decodeAnswer(answer(1, MAX_RECORDS), QUESTION, ID)).toBeNull();
});

/** Octets of a pointer and the one label before it, which make names of many labels. */
const LABEL = Buffer.from([1, 0x61]);
const POINTER_TO_QUESTION = Buffer.from([0xc0, 12]);

/** An answer of many MX records whose hosts all point at the first name, which has that many labels. */
function mailHosts(records: number, labels: number): Buffer {
  const head = encode({ type: "response", id: ID, questions: [{ name: QUESTION.name, type: "MX" }] });
  head.writeUInt16BE(records, 6);
  const first = head.length + POINTER_TO_QUESTION.length + 12;
  const name = Buffer.concat([...new Array<Buffer>(labels).fill(LABEL), Buffer.from([0])]);
  const again = Buffer.from([0xc0 | (first >> 8), first & 255]);
  const rows = Array.from({ length: records }, (_, at) => {
    const host = at === 0 ? name : again;
    const fixed = Buffer.from([0, 15, 0, 1, 0, 0, 0, 60, 0, host.length + 2, 0, 10]);
    return Buffer.concat([POINTER_TO_QUESTION, fixed, host]);
  });
  return Buffer.concat([head, ...rows]);
}

test("an answer whose names need too many steps is not decoded, however few octets they have", () => {
  const question = { name: QUESTION.name, type: "MX" } as const;
  // The question's name takes its pointer and two labels of each record, a host its pointer and its labels.
  const steps = (labels: number) => 3 + 1 + labels;
  const labels = 120;
  const most = Math.floor((MAX_NAME_STEPS + 1) / steps(labels));
  expect(decodeAnswer(mailHosts(most, labels), question, ID)?.answers).toHaveLength(most);
  expect(decodeAnswer(mailHosts(most + 1, labels), question, ID)).toBeNull();
  expect(decodeAnswer(mailHosts(MAX_RECORDS, 2), question, ID)?.answers).toHaveLength(MAX_RECORDS);
});
