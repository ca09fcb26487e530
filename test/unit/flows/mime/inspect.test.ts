import { expect, test } from "bun:test";
import { AUTH_DEADLINE_MS, AUTHOR_DEADLINE_MS, inspectMail } from "../../../../src/flows/mime/inspect.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const RAW = Buffer.from("From: ann@a.example\r\nSubject: x\r\n\r\nbody\r\n");
const SESSION = { ip: "192.0.2.1", helo: "a.example", mailFrom: "ann@a.example" };

test.each([
  ["", "those that the sender names", "b.example", AUTH_DEADLINE_MS, "none"],
  [" longer", "the author's own", "a.example", AUTHOR_DEADLINE_MS, "temperror"],
])("silent name servers are waited for%s until a deadline: %s", async (_, _name, silent, ms, dmarc) => {
  const clock = manualClock();
  const asked = Promise.withResolvers<void>();
  const resolve = async (name: string): Promise<never> => {
    if (!name.endsWith(silent)) throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
    asked.resolve();
    return new Promise(() => undefined);
  };
  let done = false;
  const session = { ...SESSION, helo: silent, mailFrom: `ann@${silent}` };
  const inspecting = inspectMail({ clock, host: "mx.test", resolve }, { raw: RAW, session });
  const inspected = inspecting.then((inspection) => {
    done = true;
    return inspection;
  });
  await asked.promise;
  clock.advance(ms - 1);
  for (let turn = 0; turn < 20; turn++) await new Promise<void>((next) => setImmediate(next));
  expect(done).toBe(false);
  clock.advance(1);
  const { mail, authentication } = await inspected;
  expect(mail.unread).toBeNull();
  expect(authentication.verdict).toMatchObject({ spf: { result: "temperror" }, dmarc: { result: dmarc } });
});
