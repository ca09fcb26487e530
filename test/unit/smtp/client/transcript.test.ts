import { describe, expect, test } from "bun:test";
import { MAX_TRANSCRIPT_LINES } from "../../../../src/core/text.ts";
import { note } from "../../../../src/smtp/client/delivery.ts";
import { boundedTranscript, MAX_TRANSCRIPT_CHARS } from "../../../../src/store/messages/attempts.ts";

function noted(lines: readonly string[]): string[] {
  const transcript: string[] = [];
  for (const line of lines) note(transcript, line);
  return transcript;
}

const lines = (count: number, chars = 0): string[] =>
  Array.from({ length: count }, (_, at) => `S: ${at}${"x".repeat(chars)}`);

describe("a transcript", () => {
  test("a transcript of as many lines as the limit is kept whole", () => {
    const said = lines(MAX_TRANSCRIPT_LINES);
    expect(noted(said)).toEqual(said);
  });

  test.each([1, 2, 500])(
    "of %d more keeps its beginning and end, and says how many lines are missing",
    (more) => {
      const said = lines(MAX_TRANSCRIPT_LINES + more);
      const kept = noted(said);
      const half = MAX_TRANSCRIPT_LINES / 2;
      expect(kept).toEqual([
        ...said.slice(0, half),
        `* ${more + 1} lines left out`,
        ...said.slice(said.length - half + 1),
      ]);
    },
  );

  test("a transcript that is cut again in storage says how many lines are missing in all", () => {
    const said = lines(1000, 150);
    const kept = boundedTranscript(noted(said));
    const notices = kept.filter((line) => line.startsWith("* "));
    expect(notices).toEqual([`* ${said.length - kept.length + 1} lines left out`]);
    expect([kept[0], kept.at(-1)]).toEqual([said[0] ?? "", said.at(-1) ?? ""]);
    expect(kept.join("").length).toBeLessThanOrEqual(MAX_TRANSCRIPT_CHARS);
  });
});
