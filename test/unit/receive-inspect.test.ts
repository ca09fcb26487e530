import { expect, test } from "bun:test";
import { AUTH_DEADLINE_MS, inspectMail } from "../../src/flows/receive/inspect.ts";
import { manualClock } from "../support/manual-clock.ts";

const RAW = Buffer.from("From: ann@a.example\r\nSubject: x\r\n\r\nbody\r\n");
const SESSION = { ip: "192.0.2.1", helo: "a.example", mailFrom: "ann@a.example" };

test("name servers that do not answer are waited for until the deadline, and not a moment longer", async () => {
  const clock = manualClock();
  const asked = Promise.withResolvers<void>();
  const resolve = (): Promise<never> => {
    asked.resolve();
    return new Promise(() => undefined);
  };
  let done = false;
  const inspecting = inspectMail({ clock, host: "mx.test", resolve }, { raw: RAW, session: SESSION });
  const inspected = inspecting.then((inspection) => {
    done = true;
    return inspection;
  });
  await asked.promise;
  clock.advance(AUTH_DEADLINE_MS - 1);
  for (let turn = 0; turn < 20; turn++) await new Promise<void>((next) => setImmediate(next));
  expect(done).toBe(false);
  clock.advance(1);
  const { mail, authentication } = await inspected;
  expect(mail.ok).toBe(true);
  expect(authentication.verdict.dmarc.result).toBe("temperror");
});
