import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { startPostrider, type TestService } from "postrider/testing";
import { startApp } from "../app/app.cjs";

// A wait ends after 10 s with an error that lists what came. A runner that ends the test before hides it.
setDefaultTimeout(30_000);

let mail: TestService;
let app: Awaited<ReturnType<typeof startApp>>;
beforeAll(async () => {
  mail = await startPostrider();
  app = await startApp({ apiKey: mail.apiKey, baseUrl: mail.url });
});
afterAll(async () => {
  await app.stop();
  await mail.stop();
});

test("a new user gets a code", async () => {
  await app.signUp("ana@example.com");
  const message = await mail.waitFor({ to: "ana@example.com", subject: /confirm/i });
  expect(message.codes).toEqual(["493817"]);
});
