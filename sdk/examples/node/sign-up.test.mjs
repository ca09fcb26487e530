import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startPostrider } from "postrider/testing";
import { startApp } from "../app/app.cjs";

let mail;
let app;
before(async () => {
  mail = await startPostrider();
  app = await startApp({ apiKey: mail.apiKey, baseUrl: mail.url });
});
after(async () => {
  await app.stop();
  await mail.stop();
});

test("a new user gets a code", async () => {
  await app.signUp("ana@example.com");
  const message = await mail.waitFor({ to: "ana@example.com", subject: /confirm/i });
  assert.deepEqual(message.codes, ["493817"]);
});
