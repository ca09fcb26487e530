import { expect, test } from "bun:test";
import { createMessageReader } from "../../../../src/net/dns/exchange.ts";

const MAX_MESSAGE_OCTETS = 65_535;

/** A message after its length, as TCP carries it. */
function framed(message: Buffer): Buffer {
  return Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message]);
}

test.each([0, 1, 2, 300, MAX_MESSAGE_OCTETS])(
  "a DNS message of %i octets is whole at its last octet, in segments of any size",
  (octets) => {
    const message = Buffer.from(Array.from({ length: octets }, (_, at) => at % 251));
    const stream = framed(message);
    for (const segmentOctets of [1, 2, 3, 1460, stream.length]) {
      const read = createMessageReader();
      for (let at = 0; at < stream.length; at += segmentOctets) {
        const whole = read(stream.subarray(at, at + segmentOctets));
        expect(whole?.equals(message) ?? null).toBe(at + segmentOctets >= stream.length ? true : null);
      }
    }
  },
);

test("octets after a DNS message over TCP do not become part of it", () => {
  const message = Buffer.from("answer");
  expect(createMessageReader()(Buffer.concat([framed(message), Buffer.from("more")]))).toEqual(message);
});
