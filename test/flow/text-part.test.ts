import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import PostalMime from "postal-mime";
import { startMx, type TestMx } from "../support/mx.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";
import { rawOf } from "../support/submit.ts";

setDefaultTimeout(60_000);

const HTML = '<h1>Order 17</h1><p>Thanks, <a href="https://shop.test/17">track it</a>.</p>';
const TEXT = "Order 17\n\nThanks, track it <https://shop.test/17>.";

let service: TestService;
let relay: TestMx;

beforeAll(async () => {
  relay = startMx();
  service = await startService({
    DELIVERY: "relay",
    SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}`,
    DELIVERY_RETRY_SECONDS: "0.05",
    PUBLIC_URL: "https://mail.example",
  });
  await verifiedDomain(service, "sender.test");
});
afterAll(async () => {
  await service?.stop();
  relay?.stop();
});

async function setting(textFromHtml: boolean): Promise<void> {
  const key = { key: service.accountKey };
  const [project] = (await service.call("GET", "/v1/senders", undefined, key)).body.data;
  const changed = await service.call("PATCH", `/v1/senders/${project.id}`, { textFromHtml }, key);
  expect(changed.body).toMatchObject({ textFromHtml });
}

async function send(content: object): Promise<string> {
  const id = await service.send({ from: "news@sender.test", ...content });
  await service.message(id, "sent");
  return id;
}

async function textOf(content: object): Promise<string | undefined> {
  const { text } = await PostalMime.parse(await rawOf(service, await send(content)));
  return text?.replaceAll("\r\n", "\n").trim();
}

/** Returns whether a message has a text part. The parser makes up a text part if there is none. */
async function hasTextPart(content: object): Promise<boolean> {
  return (await rawOf(service, await send(content))).includes("Content-Type: text/plain");
}

test("a send with html alone gets a text part, with the links of its author and the recipient's own", async () => {
  expect(await textOf({ html: HTML })).toBe(TEXT);
  const { body } = await service.call("POST", "/v1/templates", {
    name: "Order",
    subject: "x",
    html: HTML.replace("17", "{{ n }}"),
  });
  expect(await textOf({ templateId: body.id, data: { n: 18 } })).toBe(TEXT.replace("17", "18"));
  const link = await textOf({ html: '<a href="{{ unsubscribeUrl }}">no more</a>', unsubscribeLink: true });
  expect(link).toMatch(/^no more <https:\/\/mail\.example\/[^ {}]+>$/);
});

test("html of a long newsletter gets one, too", async () => {
  expect(await textOf({ html: `${HTML}<p>${"word ".repeat(40_000)}</p>` })).toStartWith(TEXT);
});

test("its record shows the content that was posted", async () => {
  const record = (await service.call("GET", `/v1/emails/${await send({ html: HTML })}`)).body;
  expect(record).toMatchObject({ html: HTML, text: null });
});

test("a send with a text of its own keeps that, and an empty one asks for no part", async () => {
  expect(await textOf({ html: HTML, text: "mine" })).toBe("mine");
  expect(await hasTextPart({ html: HTML, text: "" })).toBe(false);
});

test("a project can turn it off, and a retry of an earlier message is still the same message", async () => {
  let refused = "";
  relay.set({
    ".": [
      async (data) => {
        refused = data;
        await setting(false);
        return "451 4.3.0 later";
      },
      "250 2.0.0 ok",
    ],
  });
  await send({ html: HTML });
  expect(refused).toContain("Content-Type: text/plain");
  expect(relay.messages.items.at(-1)?.data.toString("latin1")).toBe(refused);
  expect(await hasTextPart({ html: HTML })).toBe(false);
  await setting(true);
  expect(await hasTextPart({ html: HTML })).toBe(true);
});
