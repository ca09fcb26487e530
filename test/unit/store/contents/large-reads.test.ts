import { expect, test } from "bun:test";
import { Admission } from "../../../../src/core/concurrency/admission.ts";
import type { AppError } from "../../../../src/core/errors.ts";
import { LARGE_OCTETS, LARGE_READS, readLarge } from "../../../../src/store/contents/large-reads.ts";

test("a large read is refused with 503 if too many wait", async () => {
  const reads = new Admission(LARGE_READS);
  const { promise: read, resolve } = Promise.withResolvers<void>();
  const ask = (project: number) => readLarge(reads, `snd_${project}`, LARGE_OCTETS + 1, () => read);
  const asked = Array.from({ length: LARGE_READS.total + LARGE_READS.maxWaiting }, (_, project) =>
    ask(project),
  );
  expect(reads.waiting).toBe(LARGE_READS.maxWaiting);
  const refusal = await ask(-1).then(
    () => expect.unreachable(),
    (error: AppError) => error,
  );
  expect([refusal.type, refusal.details.retryAfterSeconds]).toEqual(["service_unavailable", 1]);
  resolve();
  await Promise.all(asked);
});
