import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { parseMail } from "../../src/mail/reading/parse.ts";
import { MIN_TEXT_FOR_PICTURE } from "../../src/core/messages/tracking.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { SERVICE_DOMAIN, startService, type TestService, verifiedDomain } from "../support/service.ts";
import { FROM, idIn, submit, TO } from "../support/submit.ts";

// The octets that leave, at a peer that offers no extension.

let service: TestService;
let peer: TestMx;
beforeAll(async () => {
  peer = startMx({ extensions: [] });
  service = await startService({
    DELIVERY: "relay",
    SMTP_RELAY_URL: `smtp://127.0.0.1:${peer.port}`,
    DEFAULT_TRACKING: "clicks",
    SUBMISSION_PORT: "0",
    SUBMISSION_HOST: "127.0.0.1",
    SUBMISSION_INSECURE_LOOPBACK: "1",
  });
  await verifiedDomain(service, "from.test");
});
afterAll(async () => {
  await service?.stop();
  peer?.stop();
});

/** A message as it left: its octets, its unfolded header fields, and its html. */
interface Left {
  data: Buffer;
  fields: Map<string, string[]>;
  html: string;
}

async function leaves(makes: () => Promise<string>): Promise<Left> {
  const before = peer.messages.items.length;
  await service.message(await makes(), "sent");
  const { data } = await peer.messages.reached(before + 1);
  const [header = ""] = data.toString("latin1").split("\r\n\r\n", 1);
  const fields = new Map<string, string[]>();
  for (const line of header.replaceAll(/\r\n[ \t]+/g, " ").split("\r\n")) {
    const [, name = "", value = ""] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
    fields.set(name.toLowerCase(), [...(fields.get(name.toLowerCase()) ?? []), value]);
  }
  return { data, fields, html: (await parseMail(data)).html ?? "" };
}

const sent = (item: Record<string, unknown>): Promise<Left> =>
  leaves(async () => {
    const mail = { from: { email: FROM }, to: [TO], subject: "Hi", ...item };
    const { status, body } = await service.call("POST", "/v1/emails", mail);
    if (status !== 202) throw new Error(JSON.stringify(body));
    return body.id;
  });

/** The result of the signature, by the published key, and the fields that it seals. */
async function signature({ data, fields }: Left): Promise<{ result: string; sealed: string[] }> {
  const key = await service.app.db.first<{ public_key: string }>(
    "SELECT public_key FROM dkim_keys WHERE status = 'active' AND domain_id IS NOT NULL",
  );
  const resolver = async () => [[`v=DKIM1; k=rsa; p=${key?.public_key}`]];
  const { results } = await dkimVerify(data, { resolver });
  const [list = ""] = /\bh=([^;]+)/.exec(fields.get("dkim-signature")?.[0] ?? "")?.slice(1) ?? [];
  return {
    result: results.map(({ status }) => status.result).join(),
    sealed: list.replaceAll(/\s/g, "").toLowerCase().split(":"),
  };
}

describe("the header of a message that leaves", () => {
  test.each([
    ["transactional", {}],
    ["bulk", { stream: "bulk" }],
  ])("a %s message gets a Feedback-ID of its project and stream, which is signed", async (stream, item) => {
    const left = await sent({ text: "x", ...item });
    expect(left.fields.get("feedback-id")).toEqual([
      expect.stringMatching(new RegExp(`^snd_\\w+:${stream}:[0-9a-f]{12}$`)),
    ]);
    const { result, sealed } = await signature(left);
    expect([result, sealed.includes("feedback-id"), sealed.includes("list-id")]).toEqual([
      "pass",
      true,
      false,
    ]);
  });

  test("a Feedback-ID and a List-Id of its author's stay", async () => {
    const headers = { "Feedback-ID": "spring:shop:1", "List-Id": "News <news.from.test>" };
    const { fields } = await sent({ text: "x", headers, unsubscribeLink: true });
    expect(fields.get("feedback-id")).toEqual(["spring:shop:1"]);
    expect(fields.get("list-id")).toEqual(["News <news.from.test>"]);
  });

  test("one click to unsubscribe comes with an address and a List-Id, all of them signed", async () => {
    const left = await sent({ text: "x {{unsubscribeUrl}}", unsubscribeLink: true });
    const { fields } = left;
    const [link = "", mail = ""] = (fields.get("list-unsubscribe")?.[0] ?? "").split(/,\s*/);
    const token = /\/u\/([0-9a-z]+)>$/.exec(link)?.[1] ?? "none";
    expect(mail).toBe(`<mailto:u+${token}@bounce.${SERVICE_DOMAIN}?subject=unsubscribe>`);
    expect(fields.get("list-unsubscribe-post")).toEqual(["List-Unsubscribe=One-Click"]);
    expect(fields.get("list-id")).toEqual([expect.stringMatching(/^<snd-\w+\.from\.test>$/)]);
    const { result, sealed } = await signature(left);
    expect(result).toBe("pass");
    expect(sealed).toEqual(expect.arrayContaining(["list-id", "list-unsubscribe", "list-unsubscribe-post"]));
  });

  test("fields that a message lacks are not sealed, so that a mailing list may add its own", async () => {
    const left = await sent({ text: "x" });
    const { sealed } = await signature(left);
    const open = ["reply-to", "in-reply-to", "references", "list-id", "list-unsubscribe", "list-post"];
    expect(sealed.filter((name) => open.includes(name))).toEqual([]);
    const list = open.map((name) => `${name}: <l@list.test>\r\n`).join("");
    const resent = { ...left, data: Buffer.concat([Buffer.from(list), left.data]) };
    expect((await signature(resent)).result).toBe("pass");
  });
});

describe("octets beyond ASCII, for a peer without 8BITMIME", () => {
  const isAscii = ({ data }: Left) => data.every((octet) => octet < 0x80);
  const mailCommand = () => peer.commands.items.findLast((line) => line.startsWith("MAIL"));
  const WORDS = "Grüße aus Łódź";

  test("octets beyond ASCII in content by the API are encoded before they are signed", async () => {
    const left = await sent({ subject: WORDS, text: WORDS, html: `<p>${WORDS}</p>` });
    expect([isAscii(left), (await signature(left)).result]).toEqual([true, "pass"]);
    expect(left.html).toContain(WORDS);
    expect(mailCommand()).not.toContain("BODY");
  });

  test("octets beyond ASCII in a submitted message are encoded before they are signed", async () => {
    const header = [
      `From: ${FROM}`,
      `To: ${TO}`,
      "Subject: Hi",
      "MIME-Version: 1.0",
      "Content-Type: text/plain; charset=utf-8",
      "Content-Transfer-Encoding: 8bit",
    ];
    const parameters = " BODY=8BITMIME";
    const left = await leaves(async () =>
      idIn(await submit(service, { header, body: `${WORDS}\r\n`, parameters })),
    );
    expect([isAscii(left), (await signature(left)).result]).toEqual([true, "pass"]);
    expect((await parseMail(left.data)).text?.trim()).toBe(WORDS);
    expect(mailCommand()).not.toContain("BODY");
  });
});

describe("the html of a message that leaves", () => {
  const hrefsOf = ({ html }: Left) => [...html.matchAll(/href="([^"]+)"/g)].map(([, href = ""]) => href);
  const hasPicture = ({ html }: Left) => /<img |background-image/.test(html);
  const LONG = `<p>${"ab cd ".repeat(MIN_TEXT_FOR_PICTURE / 4)}</p>`;

  test.each([
    ["an address", "https://shop.com/a", false],
    ["a host", "shop.com", false],
    ["words", "Shop", true],
  ])("a link whose text is %s is tracked or not: %s, %p", async (_what, text, tracked) => {
    const [href = ""] = hrefsOf(await sent({ html: `<a href="https://shop.com/a">${text}</a>` }));
    expect(/\/c\/[^/]+$/.test(href)).toBe(tracked);
    if (!tracked) expect(href).toBe("https://shop.com/a");
  });

  test.each<[string, Record<string, unknown>, boolean]>([
    ["short html has none if opens are auto", { html: "<p>Hi</p>", tracking: { opens: "auto" } }, false],
    ["long html has one if opens are auto", { html: LONG, tracking: { opens: "auto" } }, true],
    ["it has none if DEFAULT_TRACKING leaves opens out", { html: LONG }, false],
    ["short html has one if it asks for opens", { html: "<p>Hi</p>", tracking: { opens: true } }, true],
  ])("the picture that reports opens: %s", async (_name, item, has) => {
    expect(hasPicture(await sent(item))).toBe(has);
  });

  test("DEFAULT_TRACKING is what a new project has, unless its request says otherwise", async () => {
    const key = { key: service.accountKey };
    const made = async (more: object) =>
      (
        await service.call(
          "POST",
          "/v1/senders",
          { name: "Shop", externalId: crypto.randomUUID(), ...more },
          key,
        )
      ).body.tracking;
    expect(await made({})).toEqual({ opens: false, clicks: true });
    expect(await made({ tracking: { opens: "auto" } })).toEqual({ opens: "auto", clicks: true });
  });
});
