import { expect, test } from "bun:test";
import { base64Pieces } from "../../../../src/flows/accept/attachment.ts";
import { CHUNK_OCTETS, contentOf, newContent } from "../../../../src/store/contents/content-bytes.ts";

/** Bytes that differ by position and do not compress. */
function bytesOf(size: number): Uint8Array<ArrayBuffer> {
  let state = 1;
  return Uint8Array.from({ length: size }, () => {
    state = (state * 48271) % 2147483647;
    return state & 0xff;
  });
}

test("each piece of base64 equals that part of the whole encoding", () => {
  for (const size of [0, 1, 2, 3, 4, 5, 61, 62, 63]) {
    const bytes = bytesOf(size);
    const pieces = base64Pieces(Buffer.from(bytes).toString("base64"));
    expect(pieces.length).toBe(size);
    for (let from = 0; from <= size; from++)
      for (let to = from; to <= size + 2; to++)
        expect(Uint8Array.from(pieces.subarray(from, to)), `${size}: ${from} to ${to}`).toStrictEqual(
          bytes.subarray(from, to),
        );
  }
});

test("a content made piecewise from base64 equals the one made from its bytes", async () => {
  for (const size of [CHUNK_OCTETS - 1, CHUNK_OCTETS, CHUNK_OCTETS + 1, 17 * CHUNK_OCTETS + 5])
    for (const bytes of [bytesOf(size), Buffer.alloc(size, "text that shrinks ")]) {
      const whole = newContent(bytes);
      expect(await contentOf(bytes)).toEqual(whole);
      expect(await contentOf(base64Pieces(Buffer.from(bytes).toString("base64")))).toEqual(whole);
    }
});
