import { afterEach, describe, expect, test } from "bun:test";
import { recipientToken } from "../../src/flows/mime/recipient-token.ts";
import { verpAddress } from "../../src/mail/verp.ts";
import { openKeys } from "../../src/wiring/store/installation-keys.ts";
import { inboxService } from "../support/inbox-service.ts";
import { deliver } from "../support/mail-in.ts";
import { SERVICE_DOMAIN } from "../support/service.ts";

const scene = inboxService();
afterEach(() => scene.service.call("DELETE", "/v1/suppressions?email=far@one.test"));

/** A message that was delivered, and its return path. */
async function sent(): Promise<{ id: string; returnPath: string }> {
  const { service } = scene;
  const item = { from: { email: "a@in.test" }, to: [{ email: "far@one.test" }], subject: "Hi", text: "x" };
  const { id } = (await service.call("POST", "/v1/emails", item)).body;
  await service.message(id, "delivered");
  const { verp } = openKeys(null, service.folder);
  return { id, returnPath: verpAddress(recipientToken(verp, { messageId: id, ord: 0 }), "in.test") };
}

/** A domain whose policy makes us refuse all of its mail. */
function strictProvider(name: string): string {
  scene.service.dns.add(
    { name: `_dmarc.${name}`, type: "TXT", data: "v=DMARC1; p=reject" },
    { name, type: "TXT", data: "v=spf1 -all" },
  );
  return name;
}

/** A provider's complaint about the message with that return path. `more` follows the message in it. */
function report(provider: string, returnPath: string, more = "") {
  const headers = [
    `From: fbl@${provider}`,
    "Subject: complaint",
    "MIME-Version: 1.0",
    'Content-Type: multipart/report; report-type=feedback-report; boundary="b"',
  ];
  const parts = [
    "--b",
    "Content-Type: message/feedback-report",
    "",
    "Feedback-Type: abuse",
    "User-Agent: Provider/1.0",
    "Version: 1",
    "",
    "--b",
    "Content-Type: message/rfc822",
    "",
    `Return-Path: <${returnPath}>`,
    "Subject: Hi",
    "",
    "x",
    `${more}--b--`,
  ];
  return { headers, body: parts.join("\r\n") };
}

describe("a feedback report", () => {
  test("a feedback report to the complaints' address is about the recipient of the return path in it, checks or no checks", async () => {
    const { service } = scene;
    const provider = strictProvider("fbl.test");
    const { id, returnPath } = await sent();
    expect(returnPath).toStartWith("b+");
    const forged = returnPath.replace(/.@/, (end) => (end === "0@" ? "1@" : "0@"));
    const letter = { to: `FBL@${SERVICE_DOMAIN}`, mailFrom: `x@${provider}` };
    expect(await deliver(service, { ...letter, ...report(provider, forged) })).toStartWith("250");
    expect((await service.message(id, "delivered")).recipients[0].status).toBe("delivered");
    expect(await deliver(service, { ...letter, ...report(provider, returnPath) })).toStartWith("250");
    expect((await service.message(id, "complained")).recipients[0].status).toBe("complained");
    const suppressed = await service.call("GET", "/v1/suppressions?email=far@one.test");
    expect(suppressed.body.data).toMatchObject([{ reason: "complaint" }]);
  });

  // RFC 5965 §2
  test("a feedback report may contain only the header of the message", async () => {
    const { service } = scene;
    const { id, returnPath } = await sent();
    const { headers, body } = report("fbl.test", returnPath);
    const letter = { headers, body: body.replace("message/rfc822", "text/rfc822-headers") };
    const to = `fbl@${SERVICE_DOMAIN}`;
    expect(await deliver(service, { to, mailFrom: "x@fbl.test", ...letter })).toStartWith("250");
    expect((await service.message(id, "complained")).recipients[0].status).toBe("complained");
  });

  test("a feedback report is read at its beginning, because the returned message may be of any size", async () => {
    const { service } = scene;
    const { id, returnPath } = await sent();
    const large = report("far.test", returnPath, "x\r\n".repeat(1_000_000));
    expect(await deliver(service, { to: returnPath, mailFrom: "", ...large })).toStartWith("250");
    await service.message(id, "complained");
  });

  test("a feedback report to a return path is not refused for its sender's policy", async () => {
    const { service } = scene;
    const provider = strictProvider("strict.test");
    const { id, returnPath } = await sent();
    const letter = { to: returnPath, mailFrom: `x@${provider}`, ...report(provider, returnPath) };
    expect(await deliver(service, letter)).toStartWith("250");
    await service.message(id, "complained");
  });

  const fields = (...lines: string[]) => lines.map((line) => `${line}\r\n`).join("");

  test.each<[what: string, part: (path: string) => string, header: (path: string) => string]>([
    [
      "blacks out its own field",
      () => fields("Original-Mail-From: <redacted@redacted.invalid>"),
      (path) => fields(`Return-Path: <${path}>`),
    ],
    [
      "is about a message that was forwarded, and shows the later return path first",
      () => "",
      (path) => fields("Return-Path: <else@far.test>", `Return-Path: <${path}>`),
    ],
    [
      "is about a mail whose return path was rewritten (SRS)",
      (path) => fields(`Original-Mail-From: <SRS0=x1=YZ=in.test=${path.replace("@in.test", "@fwd.test")}>`),
      () => "",
    ],
  ])(
    "a feedback report that %s is about the recipient that our token in it names",
    async (_, part, header) => {
      const { service } = scene;
      const { id, returnPath } = await sent();
      const { headers, body } = report("far.test", returnPath);
      const changed = body
        .replace("Version: 1\r\n", `Version: 1\r\n${part(returnPath)}`)
        .replace(`Return-Path: <${returnPath}>\r\n`, header(returnPath));
      const letter = { to: `fbl@${SERVICE_DOMAIN}`, mailFrom: "x@far.test", headers, body: changed };
      expect(await deliver(service, letter)).toStartWith("250");
      await service.message(id, "complained");
    },
  );
});

/** A provider whose reports come from this machine. */
function provenProvider(name: string): string {
  scene.service.dns.add({ name, type: "TXT", data: "v=spf1 ip4:127.0.0.1 -all" });
  return name;
}

describe("a complaint whose return path was removed", () => {
  const unsubscribeToken = (id: string) =>
    recipientToken(openKeys(null, scene.service.folder).unsubscribe, { messageId: id, ord: 0 });
  const forged = (token: string) => token.replace(/.$/, (end) => (end === "0" ? "1" : "0"));

  /** Reports about the message, and returns the status of its recipient afterwards. */
  async function complain(
    { id, returnPath }: { id: string; returnPath: string },
    fields: readonly string[],
    from: string,
    about = "",
  ): Promise<string> {
    const { headers, body } = report(from, returnPath);
    const changed = body
      .replace(`Return-Path: <${returnPath}>\r\n`, fields.map((line) => `${line}\r\n`).join(""))
      .replace("Version: 1\r\n", `Version: 1\r\n${about}`);
    const letter = { to: `fbl@${SERVICE_DOMAIN}`, mailFrom: `x@${from}`, headers, body: changed };
    expect(await deliver(scene.service, letter)).toStartWith("250");
    return (await scene.service.call("GET", `/v1/emails/${id}`)).body.recipients[0].status;
  }

  test("a complaint whose return path was removed is about the recipient named by the token in List-Unsubscribe or CFBL-Feedback-ID, unless it is forged", async () => {
    for (const fieldOf of [
      ({ id }: { id: string }) => ["List-Unsubscribe: <https://x.test/u/", unsubscribeToken(id), ">"],
      ({ id }: { id: string }) => [
        "List-Unsubscribe: <mailto:u+",
        unsubscribeToken(id),
        "@b.test?subject=x>",
      ],
      ({ returnPath }: { returnPath: string }) => [
        "CFBL-Feedback-ID: ",
        returnPath.slice(2, returnPath.indexOf("@")),
        "",
      ],
    ] as const) {
      const mail = await sent();
      const [before = "", token = "", after = ""] = fieldOf(mail);
      expect(await complain(mail, [before + forged(token) + after], "far.test")).toBe("delivered");
      expect(await complain(mail, [before + token + after], "far.test")).toBe("complained");
      await scene.service.call("DELETE", "/v1/suppressions?email=far@one.test");
    }
  });

  test("a complaint whose return path was removed is about the recipient of our Message-ID, if its sender is proven and names no other", async () => {
    const mail = await sent();
    const fields = [`Message-ID: <${mail.id}@in.test>`];
    const proven = provenProvider("hot.test");
    expect(await complain(mail, fields, "far.test")).toBe("delivered");
    expect(await complain(mail, fields, proven, "Original-Rcpt-To: else@one.test\r\n")).toBe("delivered");
    expect(await complain(mail, [`Message-ID: <${mail.id}@else.test>`], proven)).toBe("delivered");
    expect(await complain(mail, fields, proven, "Original-Rcpt-To: FAR@one.test\r\n")).toBe("complained");
  });
});

describe("a message to the address next to the unsubscribe link", () => {
  const contacts = async () => (await scene.service.call("GET", "/v1/contacts?q=far@one.test")).body.data;
  const unsubscribed = async (id: string) =>
    (await scene.service.call("GET", `/v1/emails/${id}`)).body.events.filter(
      ({ type }: { type: string }) => type === "unsubscribed",
    );

  test("unsubscribes its recipient once; a program's answer and a forged token do not", async () => {
    const { service } = scene;
    const { id } = await sent();
    const token = recipientToken(openKeys(null, service.folder).unsubscribe, { messageId: id, ord: 0 });
    const to = (name: string) => `u+${name}@bounce.${SERVICE_DOMAIN}`;
    const forged = token.replace(/.$/, (end) => (end === "0" ? "1" : "0"));
    expect(await deliver(service, { to: to(forged), mailFrom: "x@far.test" }).catch(String)).toMatch(
      /^(?:Error: )?550/,
    );
    expect(await deliver(service, { to: to(token), mailFrom: "" })).toStartWith("250");
    expect(await contacts()).toEqual([]);
    for (const name of [token, token.toUpperCase()])
      expect(await deliver(service, { to: to(name), mailFrom: "x@far.test" })).toStartWith("250");
    expect(await contacts()).toMatchObject([{ subscribed: false }]);
    expect(await unsubscribed(id)).toMatchObject([
      { email: "far@one.test", data: { unsubscribed: { how: "mail" } } },
    ]);
    await service.call("DELETE", `/v1/contacts/${(await contacts())[0].id}`);
  });

  test.each([
    ["one_click", ""],
    ["page", "?by=page"],
  ])("as the link does, of which an event says how: %s", async (how, query) => {
    const { service } = scene;
    const { id } = await sent();
    const token = recipientToken(openKeys(null, service.folder).unsubscribe, { messageId: id, ord: 0 });
    for (let times = 0; times < 2; times++)
      expect((await fetch(`${service.url}/u/${token}${query}`, { method: "POST" })).status).toBe(200);
    expect(await unsubscribed(id)).toMatchObject([{ data: { unsubscribed: { how } } }]);
    await service.call("DELETE", `/v1/contacts/${(await contacts())[0].id}`);
  });
});

test("a contact that the API unsubscribes gives an event to the message that it names, once, and only if that went to the contact", async () => {
  const { service } = scene;
  const { id } = await sent();
  const contact = (await service.call("POST", "/v1/contacts", { email: "FAR@one.test" })).body;
  const other = (await service.call("POST", "/v1/contacts", { email: "else@one.test" })).body;
  const leave = (who: { id: string }, body?: object) =>
    service.call("POST", `/v1/contacts/${who.id}/unsubscribe`, body);
  const refused = await leave(other, { messageId: id });
  expect([refused.status, refused.body.error.param]).toEqual([422, "messageId"]);
  expect((await leave(other)).body.subscribed).toBe(false);
  for (let times = 0; times < 2; times++)
    expect((await leave(contact, { messageId: id })).body.subscribed).toBe(false);
  const { events } = (await service.call("GET", `/v1/emails/${id}`)).body;
  expect(events.filter(({ type }: { type: string }) => type === "unsubscribed")).toMatchObject([
    { email: "far@one.test", data: { unsubscribed: { how: "api" } } },
  ]);
  for (const { id: made } of [contact, other]) await service.call("DELETE", `/v1/contacts/${made}`);
});

describe("what a complaint counts", () => {
  test.each([
    ["from a provider that SPF proves", () => provenProvider("proven.test"), 1],
    ["from a provider whose SPF fails", () => strictProvider("failing.test"), 0],
    ["from a provider that publishes nothing", () => "silent.test", 0],
  ])("%s: its recipient is suppressed either way", async (_, provider, more) => {
    const { service } = scene;
    const counted = async () =>
      (
        await service.app.db.first<{ count: number }>(
          "SELECT COALESCE(SUM(complainants), 0) AS count FROM reputation",
        )
      )?.count ?? 0;
    await service.app.db.write([{ sql: "DELETE FROM complaints", args: [] }]);
    const before = await counted();
    const name = provider();
    const { id, returnPath } = await sent();
    const letter = { to: returnPath, mailFrom: `x@${name}`, ...report(name, returnPath) };
    expect(await deliver(service, letter)).toStartWith("250");
    await service.message(id, "complained");
    const suppressed = await service.call("GET", "/v1/suppressions?email=far@one.test");
    expect(suppressed.body.data).toMatchObject([{ reason: "complaint" }]);
    expect((await counted()) - before).toBe(more);
  });
});
