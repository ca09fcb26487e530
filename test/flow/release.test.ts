import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type MxMessage, startMx, type TestMx } from "../support/mx.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";
import { idIn, submit } from "../support/submit.ts";

setDefaultTimeout(60_000);

let service: TestService;
let smarthost: TestMx;
let other: TestMx;
const SETTINGS = { CAPTURE_STRICT: "0", SUBMISSION_PORT: "0", SUBMISSION_INSECURE_LOOPBACK: "1" };

beforeAll(async () => {
  [smarthost, other] = [startMx(), startMx()];
  service = await startService({
    ...SETTINGS,
    SMTP_RELAY_URL: `smtp://127.0.0.1:${smarthost.port}?insecure=1`,
    SMTP_OUT_PORT: String(other.port),
  });
  service.dns.add({ name: "to.test", type: "A", data: "127.0.0.1" });
});
afterAll(async () => {
  await service.stop();
  smarthost.stop();
  other.stop();
});

const FROM = "Shop <hello@mysaas.com>";

async function captured(item: Record<string, unknown> = {}): Promise<string> {
  const id = await service.send({ from: FROM, ...item });
  await service.message(id, "delivered");
  return id;
}

const release = (id: string, body?: unknown) => service.call("POST", `/v1/emails/${id}/release`, body);

/** Returns the last message of a server that has taken one. */
function lastAt({ messages }: TestMx): MxMessage {
  const last = messages.items.at(-1);
  if (last === undefined) throw new Error("no message has arrived");
  return last;
}

async function newRoute(body: Record<string, unknown>): Promise<string> {
  const answer = await service.call("POST", "/v1/routes", body, { key: service.accountKey });
  expect(answer.status).toBe(201);
  return answer.body.id;
}

describe("a captured message that is released", () => {
  test("leaves by the relay of the settings as a new message, and the original stays", async () => {
    const file = { filename: "a.txt", content: Buffer.from("a file").toString("base64") };
    const id = await captured({ subject: "Real", cc: "ben@one.test", attachments: [file] });
    const before = (await service.call("GET", `/v1/emails/${id}`)).body;
    const { status, body } = await release(id);
    expect([status, body.status, body.id === id]).toEqual([202, "queued", false]);
    const sent = await service.message(body.id, "sent");
    expect(sent).toMatchObject({ subject: "Real", to: before.to, cc: before.cc });
    expect(sent.attachments).toMatchObject([{ filename: "a.txt", size: 6 }]);
    const { mailFrom, data } = lastAt(smarthost);
    expect(mailFrom).toContain("@bounce.mail.test");
    expect(String(data)).toContain("From: Shop <hello@mysaas.com>");
    expect(String(data)).toContain(file.content);
    expect((await service.call("GET", `/v1/emails/${id}`)).body).toEqual(before);
  });

  test("goes to the given addresses alone", async () => {
    const id = await captured({ cc: "ben@one.test" });
    const { body } = await release(id, { to: ["Me <me@to.test>"] });
    const sent = await service.message(body.id, "sent");
    expect(sent.recipients.map(({ email }: { email: string }) => email)).toEqual(["me@to.test"]);
    expect(lastAt(smarthost).rcptTo).toEqual(["me@to.test"]);
  });

  test("keeps what a program submitted", async () => {
    const reply = await submit(service, {
      key: null,
      mailFrom: "app@mysaas.com",
      to: ["a@one.test"],
      header: [
        "From: app@mysaas.com",
        "To: a@one.test",
        "Subject: Submitted",
        "Message-ID: <own@mysaas.com>",
      ],
      body: "As it came\r\n",
    });
    const id = idIn(reply);
    await service.message(id, "delivered");
    const { body } = await release(id);
    await service.message(body.id, "sent");
    const { data } = lastAt(smarthost);
    expect(String(data)).toContain("Message-ID: <own@mysaas.com>");
    expect(String(data)).toContain("As it came");
  });

  test("has unsubscribe links of its own, though a template made the message", async () => {
    const template = {
      name: "news",
      subject: "News",
      html: '<p>New</p><a href="{{ unsubscribeUrl }}">Leave</a>',
    };
    const made = await service.call("POST", "/v1/templates", template);
    const id = await captured({ templateId: made.body.id, unsubscribeLink: true });
    await service.call("DELETE", `/v1/templates/${made.body.id}`);
    const { body } = await release(id);
    await service.message(body.id, "sent");
    const mail = String(lastAt(smarthost).data).replaceAll("=\r\n", "");
    expect(mail).toContain("/u/");
    expect(mail).not.toContain(id);
  });

  test("takes a route that it names, and counts in the quota", async () => {
    const routeId = await newRoute({
      name: "other",
      kind: "relay",
      relayUrl: `smtp://127.0.0.1:${other.port}?insecure=1`,
    });
    const used = async () => (await service.call("GET", "/v1/quota")).body.used;
    const before = await used();
    const id = await captured();
    expect(await used()).toBe(before);
    const { body } = await release(id, { routeId });
    await service.message(body.id, "sent");
    expect(lastAt(other).rcptTo).toEqual(["a@one.test"]);
    expect(await used()).toBe(before + 1);
  });

  test("goes straight to mail servers only from a verified domain", async () => {
    const routeId = await newRoute({ name: "straight", kind: "mx" });
    const foreign = await release(await captured(), { routeId });
    expect([foreign.status, foreign.body.error.code]).toEqual([403, "domain_not_verified"]);
    await verifiedDomain(service, "sender.test");
    const id = await captured({ from: "hello@sender.test", to: "ana@to.test" });
    const { body } = await release(id, { routeId });
    await service.message(body.id, "delivered");
    expect(String(lastAt(other).data)).toContain("DKIM-Signature");
  });
});

describe("a release is refused", () => {
  test("with 409 if the message was not captured", async () => {
    const id = await service.send({ from: FROM, to: "delivered@simulator.mail.test" });
    await service.message(id, "delivered");
    const { status, body } = await release(id);
    expect([status, body.error.code]).toEqual([409, "invalid_state"]);
  });

  test("with 404 for a message of nobody, and 422 for bad addresses and routes", async () => {
    const id = await captured();
    expect((await release("msg_00000000000000000000000000")).status).toBe(404);
    expect((await release(id, { to: "nobody" })).body.error.param).toBe("to[0]");
    expect((await release(id, { routeId: "rte_none" })).body.error.param).toBe("routeId");
  });

  test("with 409 that says what to configure if nothing can leave", async () => {
    const id = await captured();
    await service.restart({ SMTP_RELAY_URL: "" });
    const { status, body } = await release(id);
    expect([status, body.error.code]).toEqual([409, "invalid_state"]);
    expect(body.error.message).toContain("Set SMTP_RELAY_URL");
    await service.restart();
  });
});
