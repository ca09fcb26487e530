import { expect, test } from "bun:test";
import { mayWriteAhead } from "../../../../src/flows/accept/content.ts";
import { CHUNK_OCTETS } from "../../../../src/store/contents/content-bytes.ts";
import { bodyBytes } from "../../../../src/store/contents/message-body.ts";

const send = (body: { html?: string; text?: string }) => ({
  from: { email: "a@example.com" },
  to: [{ email: "b@example.com" }],
  ...body,
});

/** Maximum characters of a body, both parts together, that are reported as stored with the commit. */
function mostAtOnce(): number {
  let most = 0;
  for (let step = CHUNK_OCTETS; step >= 1; step /= 2)
    if (!mayWriteAhead(send({ text: "x".repeat(most + step) }))) most += step;
  return most;
}

test("every body that is reported as stored with its commit fits, whatever its text", () => {
  const most = mostAtOnce();
  const [html, text] = ["€".repeat(most >> 1), "€".repeat(most - (most >> 1))];
  expect(mayWriteAhead(send({ html, text }))).toBe(false);
  expect(bodyBytes({ html, text }).length).toBeLessThanOrEqual(CHUNK_OCTETS);
});

test("almost every body that fits is reported so", () => {
  const text = "€".repeat(mostAtOnce() + 30);
  expect(bodyBytes({ html: null, text }).length).toBeGreaterThan(CHUNK_OCTETS);
});
