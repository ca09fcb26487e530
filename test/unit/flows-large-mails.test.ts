import { expect, test } from "bun:test";
import type { AppError } from "../../src/core/errors.ts";
import { LARGE_AT_A_TIME, LARGE_OCTETS, largeMails, withRoomFor } from "../../src/flows/read/large-mails.ts";

const PROJECTS_WAITING = 1000;

test("who would wait behind too many large mails is told when to come again", async () => {
  const mails = largeMails();
  const { promise: read, resolve } = Promise.withResolvers<void>();
  const ask = (project: number) => withRoomFor(mails, `snd_${project}`, LARGE_OCTETS + 1, () => read);
  const asked = Array.from({ length: LARGE_AT_A_TIME + PROJECTS_WAITING }, (_, project) => ask(project));
  const refusal: AppError = await ask(-1).then(
    () => expect.unreachable(),
    (error) => error,
  );
  expect([refusal.type, refusal.details.retryAfter]).toEqual(["service_unavailable", 1]);
  resolve();
  await Promise.all(asked);
});
