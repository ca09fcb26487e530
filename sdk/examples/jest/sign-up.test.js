const { startPostrider } = require("postrider/testing");
const { startApp } = require("../app/app.cjs");

// A wait ends after 10 s with an error that lists what came. A runner that ends the test before hides it.
jest.setTimeout(30_000);

let mail;
let app;
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

test("a message that bounces is told", async () => {
  await mail.failNext({ to: /@gone\.example$/, stage: "rcpt", reply: "550 5.1.1 no such user" });
  const bounced = new Promise((resolve) => mail.webhooks.on("bounce", resolve));
  await app.signUp("bo@gone.example");
  expect((await bounced).bounce.type).toBe("hard");
});
