import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { createTransport } from "nodemailer";
import { verifyWebhook } from "../../sdk/src/index.ts";
import { startPostrider, type TestService } from "../../sdk/src/testing.ts";

setDefaultTimeout(90_000);

let mail: TestService;
beforeAll(async () => {
  mail = await startPostrider({ timeoutMs: 60_000 });
}, 90_000);
afterAll(() => mail.stop());

const FROM = "Acme <hello@mysaas.example>";

test("a message sent with any From is found by address and subject, with its code and link, and is returned once", async () => {
  const { client, waitFor } = await mail.project("code");
  const text = "Your verification code is 493817. Or open https://mysaas.example/c?t=1";
  await client.emails.send({ from: FROM, to: "ana@example.com", subject: "Please confirm", text });
  const message = await waitFor({ to: "ana@example.com", from: "hello@mysaas.example", subject: /CONFIRM/i });
  expect([message.codes, message.links?.map(({ url }) => url)]).toEqual([
    ["493817"],
    ["https://mysaas.example/c?t=1"],
  ]);
  await expect(waitFor({ subject: "Please" }, { timeoutMs: 100 })).rejects.toThrow(
    'No message with subject Please within 100 ms. These did:\n  to ana@example.com: "Please confirm" (delivered, returned before)',
  );
});

test("a program that speaks SMTP with the project's login sends into that project", async () => {
  const [one, other] = [await mail.project("smtp"), await mail.project("smtp of another")];
  for (const options of [one.smtp, one.smtpUrl])
    await createTransport(options as string).sendMail({
      from: FROM,
      to: "bo@example.com",
      subject: "By SMTP",
      text: "x",
    });
  expect((await one.waitFor({ subject: "By SMTP" })).status).toBe("delivered");
  await expect(other.waitFor({}, { timeoutMs: 100 })).rejects.toThrow("No message arrived.");
});

test("deliveries fail as asked, and leave when the clock is set forward", async () => {
  const { client, waitFor, webhooks } = await mail.project("retries");
  const { promise: delivered, resolve } = Promise.withResolvers<string>();
  const seen: string[] = [];
  webhooks.on("*", ({ type }) => seen.push(type));
  const stop = webhooks.on("delivery", ({ messageId }) => resolve(messageId));
  await mail.failNext({ to: /@late\.example$/, stage: "data", reply: "451 4.7.1 try later", times: 2 });
  await client.emails.send({ from: FROM, to: "cy@late.example", subject: "Late", text: "x" });
  const { id } = await waitFor({ subject: "Late" });
  const attempts = async () => (await client.emails.attempts(id)).data;
  const until = async (count: number) => {
    while ((await attempts()).length < count) await mail.advance({ hours: 1 });
  };
  await until(2);
  const failed = (await attempts()).slice(0, 2);
  expect(failed.map(({ smtpCode, enhancedCode }) => `${smtpCode} ${enhancedCode}`)).toEqual([
    "451 4.7.1",
    "451 4.7.1",
  ]);
  await until(3);
  expect(await delivered).toBe(id);
  stop();
  expect(seen.filter((type) => type === "delivery_delayed")).toHaveLength(2);
});

test("a 5xx bounces, and a reset forgets the message and its suppression", async () => {
  const project = await mail.project("bounces");
  const send = () =>
    project.client.emails.send({ from: FROM, to: "di@gone.example", subject: "Gone", text: "x" });
  await mail.failNext({ to: "di@gone.example", stage: "rcpt", reply: "550 5.1.1 no such user" });
  const { promise: bounced, resolve } = Promise.withResolvers<void>();
  project.webhooks.on("bounce", () => resolve());
  await send();
  await bounced;
  expect((await project.waitFor({ subject: "Gone" })).status).toBe("bounced");
  await project.reset();
  await expect(project.waitFor({}, { timeoutMs: 100 })).rejects.toThrow("No message arrived.");
  await send();
  expect((await project.waitFor({ subject: "Gone" })).to).toEqual(["di@gone.example"]);
  expect((await project.client.suppressions.list()).data).toEqual([]);
});

test("a received message makes the inbox it is for, and can be answered", async () => {
  const project = await mail.project("support");
  const message = {
    from: "ana@example.com",
    to: "help@support.example",
    subject: "Hi",
    text: "Where is it?",
  };
  const received = await project.receive(message);
  await project.receive({ ...message, subject: "Again" });
  await project.client.threads.reply(received.threadId, { text: "On its way." });
  expect((await project.waitFor({ to: "ana@example.com" })).text).toContain("On its way.");
});

test("a message is returned once its template is rendered, and a scheduled one once its time has come", async () => {
  const { client, waitFor } = await mail.project("rendered");
  const { id: templateId } = await client.templates.create({
    name: "Code",
    subject: "Code",
    text: "Your code is {{ code }}.",
  });
  await client.emails.send({ from: FROM, to: "ed@example.com", templateId, data: { code: "271828" } });
  const { codes, subject } = await waitFor({ to: "ed@example.com" });
  expect([codes, subject]).toEqual([["271828"], "Code"]);
  const scheduledAt = new Date(Date.now() + 30 * 86_400_000).toISOString();
  await client.emails.send({ from: FROM, to: "flo@example.com", subject: "Soon", text: "x", scheduledAt });
  await expect(waitFor({ to: "flo@example.com" }, { timeoutMs: 100 })).rejects.toThrow('"Soon" (accepted)');
  await mail.advance({ days: 31 });
  expect((await waitFor({ subject: /soon/gi })).status).toBe("delivered");
});

test("an endpoint of this machine takes a webhook, also after the clock was set forward", async () => {
  const { client } = await mail.project("endpoint");
  const { promise: came, resolve } = Promise.withResolvers<{ body: string; signature: string | null }>();
  const endpoint = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      resolve({ body: await request.text(), signature: request.headers.get("service-signature") });
      return new Response();
    },
  });
  try {
    const { signingSecret } = await client.webhooks.create({
      url: endpoint.url.href,
      eventTypes: ["delivery"],
    });
    await mail.advance({ hours: 1 });
    const { id } = await client.emails.send({ from: FROM, to: "gus@example.com", subject: "Hi", text: "x" });
    const { body, signature } = await came;
    const event = await verifyWebhook(body, signature, signingSecret);
    expect(event.data).toMatchObject({ messageId: id });
  } finally {
    await endpoint.stop(true);
  }
});

test("a hundred tests at the same time see only the messages and events of their own projects", async () => {
  const one = async (number: number): Promise<string[]> => {
    const project = await mail.project(`parallel ${number}`);
    const seen: string[] = [];
    const { promise: delivered, resolve } = Promise.withResolvers<void>();
    project.webhooks.on("delivery", ({ messageId }) => {
      seen.push(messageId);
      resolve();
    });
    await project.client.emails.send({
      from: FROM,
      to: "ana@example.com",
      subject: "Hi",
      text: `Your code is ${100_000 + number}.`,
    });
    const { id, codes } = await project.waitFor({ to: "ana@example.com" }, { timeoutMs: 60_000 });
    await delivered;
    await project.reset();
    return [...(codes ?? []), ...seen.filter((messageId) => messageId !== id)];
  };
  const numbers = Array.from({ length: 100 }, (_, number) => number);
  expect(await Promise.all(numbers.map(one))).toEqual(numbers.map((number) => [String(100_000 + number)]));
});

test.each([
  { failure: { stage: "data", reply: "250 ok" }, param: "reply" },
  { failure: { stage: "final", reply: "451 no" }, param: "stage" },
  { failure: { stage: "data", reply: "451 no", times: 1001 }, param: "times" },
])("a failure that cannot be made is refused: %j", async ({ failure, param }) => {
  const asked = mail.failNext(failure as Parameters<typeof mail.failNext>[0]).catch(String);
  expect(await asked).toContain(`422 {"error":{"type":"validation_error","message":"\\"${param}\\"`);
});

test("the service ends when the process that started it is killed", async () => {
  const script = `import { startPostrider } from ${JSON.stringify(join(import.meta.dir, "../../sdk/src/testing.ts"))};
    console.log((await startPostrider({ timeoutMs: 60_000 })).url);
    setInterval(() => undefined, 1000);`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
  const { value } = await child.stdout.getReader().read();
  const url = new TextDecoder().decode(value).trim();
  expect((await fetch(`${url}/livez`)).status).toBe(200);
  child.kill("SIGKILL");
  await child.exited;
  while (
    await fetch(`${url}/livez`).then(
      () => true,
      () => false,
    )
  )
    await Bun.sleep(20);
});

test("a service that cannot start says why", async () => {
  await expect(startPostrider({ env: { HOST: "0.0.0.0" } })).rejects.toThrow(
    "TEST_CONTROLS needs DELIVERY=capture and HOST=127.0.0.1",
  );
});
