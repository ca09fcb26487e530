import { afterAll, beforeAll, expect, test } from "bun:test";
import { startPostrider, type TestService } from "postrider/testing";
import { startApp } from "../app/app.cjs";

let mail: TestService;
let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  mail = await startPostrider();
  app = await startApp({ apiKey: mail.apiKey, baseUrl: mail.url });
}, 30_000);
afterAll(async () => {
  await app.stop();
  await mail.stop();
});

test("a new user gets a code", async () => {
  await app.signUp("ana@example.com");
  const message = await mail.waitFor({ to: "ana@example.com", subject: /confirm/i });
  expect(message.codes).toEqual(["493817"]);
});
