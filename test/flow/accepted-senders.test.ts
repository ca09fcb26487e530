import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dkimSign } from "mailauth/lib/dkim/sign";
import { MAX_LISTED } from "../../src/core/messages/listed-sender.ts";
import { type DkimKey, dkimRecord, generateDkimKey } from "../../src/mail/auth/dkim.ts";
import { deliverRaw } from "../support/mail-in.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";

const FRIEND = "friend.test";
const MAILER = "mailer.test";

let service: TestService;
let key: DkimKey;
let count = 0;
beforeAll(async () => {
  service = await startService();
  await receivingInboxes(service, "in.test", []);
  key = await generateDkimKey();
  const data = dkimRecord(key.publicKeyBase64).match(/.{1,255}/g) ?? [];
  for (const domain of [FRIEND, MAILER]) {
    service.dns.add({ name: `k._domainkey.${domain}`, type: "TXT", data });
    service.dns.add({ name: `_dmarc.${domain}`, type: "TXT", data: "v=DMARC1; p=none" });
    service.dns.add({ name: domain, type: "TXT", data: "v=spf1 -all" });
  }
});
afterAll(() => service.stop());

interface Box {
  id: string;
  address: string;
}
const newBox = async (accept = "anyone"): Promise<Box> =>
  (await service.call("POST", "/v1/inboxes", { address: `b${++count}@in.test`, accept })).body;
const list = (box: Box, pattern: string, which: "allow" | "block") =>
  service.call("POST", `/v1/inboxes/${box.id}/senders`, { pattern, list: which });

interface Sent {
  from: string;
  to: readonly string[];
  mailFrom?: string;
  /** The domain that signs; left out: that of From. Null: none. */
  by?: string | null;
}

/** Delivers a message. Returns the last reply. */
async function send({ from, to, mailFrom = from, by = from.slice(from.indexOf("@") + 1) }: Sent) {
  const raw = [`From: ${from}`, `To: ${to[0]}`, "Subject: Hi", "", "Please."].join("\r\n") + "\r\n";
  const signatures =
    by === null
      ? ""
      : (
          await dkimSign(Buffer.from(raw), {
            signatureData: [{ signingDomain: by, selector: "k", privateKey: key.privateKeyPem }],
          } as Parameters<typeof dkimSign>[1])
        ).signatures;
  return deliverRaw(service.smtpPort, { to, mailFrom }, signatures + raw);
}

/** The newest message of an inbox with that status, with its events. */
async function newest(box: Box, status: string) {
  const page = await service.call(
    "GET",
    `/v1/emails?direction=inbound&status=${status}&to=${box.address}&limit=1`,
  );
  const [{ id }] = page.body.data;
  return (await service.call("GET", `/v1/emails/${id}`)).body;
}

const PROVEN = `ann@${FRIEND}`;
const REFUSED = /^550 5\.7\.1 This mailbox does not take mail/;

describe("an inbox takes mail by the trust of its sender", () => {
  const rows: readonly [
    accept: string,
    listed: "allow" | "block" | null,
    signed: boolean,
    trust: string,
    taken: boolean,
  ][] = [
    ["anyone", null, false, "unauthenticated", true],
    ["anyone", "allow", false, "unauthenticated", true],
    ["anyone", "allow", true, "allowed", true],
    ["anyone", "block", true, "blocked", false],
    ["anyone", "block", false, "blocked", false],
    ["authenticated", null, false, "unauthenticated", false],
    ["authenticated", null, true, "authenticated", true],
    ["authenticated", "block", true, "blocked", false],
    ["allowed", null, true, "authenticated", false],
    ["allowed", "allow", false, "unauthenticated", false],
    ["allowed", "allow", true, "allowed", true],
  ];
  test.each(rows)(
    "accept %s, on the list %s, proven %p: %s, taken %p",
    async (accept, listed, signed, trust, taken) => {
      const box = await newBox(accept);
      if (listed !== null) expect((await list(box, PROVEN, listed)).status).toBe(201);
      const reply = await send({ from: PROVEN, to: [box.address], by: signed ? FRIEND : null });
      expect(reply).toMatch(taken ? /^250/ : REFUSED);
      const record = await newest(box, taken ? "delivered" : "inbound_rejected");
      expect(record.sender).toMatchObject({ address: PROVEN, authenticated: signed, trust });
    },
  );

  test("a refused message keeps its header alone, and its event says why", async () => {
    for (const [accept, reason] of [
      ["authenticated", "sender_unauthenticated"],
      ["allowed", "sender_not_allowed"],
    ] as const) {
      const box = await newBox(accept);
      await send({ from: PROVEN, to: [box.address], by: null });
      const record = await newest(box, "inbound_rejected");
      expect([record.text, record.threadId]).toEqual([null, null]);
      expect(record.events[0]).toMatchObject({
        type: "inbound_rejected",
        data: { inbound_rejected: { reason, inboxId: box.id } },
      });
    }
  });

  test("the inboxes that take a message get it, and the others record that they refused it", async () => {
    const [open, closed] = [await newBox(), await newBox("allowed")];
    expect(await send({ from: PROVEN, to: [open.address, closed.address] })).toStartWith("250");
    const refused = (await service.call("GET", "/v1/emails?status=inbound_rejected&limit=1")).body.data[0];
    const record = (await service.call("GET", `/v1/emails/${refused.id}`)).body;
    expect([record.inboxId, record.envelope.rcptTo]).toEqual([closed.id, [closed.address]]);
    expect((await service.call("GET", `/v1/inboxes/${open.id}/threads`)).body.data).toHaveLength(1);
  });
});

describe("the lists of senders", () => {
  test("block by the envelope and by From, and allow by From alone", async () => {
    const box = await newBox();
    await list(box, `@${MAILER}`, "block");
    expect(await send({ from: PROVEN, to: [box.address], mailFrom: `b@${MAILER}` })).toMatch(REFUSED);
    expect(await send({ from: `b@${MAILER}`, to: [box.address], mailFrom: "x@other.test" })).toMatch(REFUSED);
    expect(await send({ from: PROVEN, to: [box.address], mailFrom: "" })).toStartWith("250");
    const strict = await newBox("allowed");
    await list(strict, `@${MAILER}`, "allow");
    expect(await send({ from: PROVEN, to: [strict.address], mailFrom: `b@${MAILER}` })).toMatch(REFUSED);
    // The allowed domain signs, but it is not that of From.
    expect(await send({ from: PROVEN, to: [strict.address], by: MAILER })).toMatch(REFUSED);
  });

  test("an address decides before its domain, if it is proven, and the block before the allowance", async () => {
    const box = await newBox();
    await list(box, `@${FRIEND}`, "block");
    await list(box, PROVEN, "allow");
    expect(await send({ from: PROVEN, to: [box.address] })).toStartWith("250");
    expect(await send({ from: PROVEN, to: [box.address], by: null })).toMatch(REFUSED);
    expect(await send({ from: `bob@${FRIEND}`, to: [box.address] })).toMatch(REFUSED);
    const made = await service.call("POST", "/v1/inbound/senders", { pattern: PROVEN, list: "block" });
    expect(await send({ from: PROVEN, to: [box.address] })).toMatch(REFUSED);
    expect((await service.call("DELETE", `/v1/inbound/senders/${made.body.id}`)).status).toBe(204);
    expect(await send({ from: PROVEN, to: [box.address] })).toStartWith("250");
  });

  test("compare case, IDN and a domain itself, not what is below it", async () => {
    const box = await newBox();
    expect((await list(box, "Eve@BÜCHER.test", "block")).body.pattern).toBe("eve@xn--bcher-kva.test");
    expect(await send({ from: "EVE@xn--bcher-kva.TEST", to: [box.address], by: null })).toMatch(REFUSED);
    await list(box, "@other.test", "block");
    expect(await send({ from: "a@sub.other.test", to: [box.address], by: null })).toStartWith("250");
  });

  test("are read, and entries leave them; a pattern has one place on them", async () => {
    const box = await newBox();
    const made = await list(box, "@one.test", "allow");
    expect(made.body).toEqual({
      id: expect.stringMatching(/^lse_/),
      inboxId: box.id,
      pattern: "@one.test",
      list: "allow",
      createdAt: expect.any(String),
    });
    expect(await list(box, "@ONE.test", "block")).toMatchObject({
      status: 409,
      body: { error: { param: "pattern" } },
    });
    const path = `/v1/inboxes/${box.id}/senders`;
    expect((await service.call("GET", path)).body.data).toEqual([made.body]);
    expect((await service.call("DELETE", `/v1/inbound/senders/${made.body.id}`)).status).toBe(404);
    expect((await service.call("DELETE", `${path}/${made.body.id}`)).status).toBe(204);
    expect((await service.call("GET", path)).body.data).toEqual([]);
    expect((await list({ ...box, id: "inb_none" }, "@a.test", "block")).status).toBe(404);
  });

  test.each(["ann", "@", "@*.a.test", "a@b@c"])("%s is no pattern", async (pattern) => {
    const { status, body } = await list(await newBox(), pattern, "block");
    expect([status, body.error.param]).toEqual([422, "pattern"]);
  });

  test("one more than a project may have is refused", async () => {
    const box = await newBox();
    const { senderId } = (await service.call("GET", `/v1/inboxes/${box.id}`)).body;
    await service.app.db.write([
      {
        sql: `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
          INSERT INTO listed_senders (id, sender_id, pattern, list, created_at)
          SELECT 'lse_' || i, ?, i || '@full.test', 'block', 0 FROM n`,
        args: [MAX_LISTED, senderId],
      },
    ]);
    expect(await list(box, "@over.test", "allow")).toMatchObject({
      status: 403,
      body: { error: { param: "senders" } },
    });
    await service.app.db.write([
      { sql: "DELETE FROM listed_senders WHERE pattern GLOB '*@full.test'", args: [] },
    ]);
  });
});

describe("trust", () => {
  test("filters lists of messages, alone and with others", async () => {
    const box = await newBox();
    await send({ from: `only@${FRIEND}`, to: [box.address] });
    await send({ from: `only@${FRIEND}`, to: [box.address], by: null });
    const found = async (query: string) =>
      (await service.call("GET", `/v1/emails?from=only@${FRIEND}&${query}`)).body.data.length;
    expect(await found("trust=authenticated")).toBe(1);
    expect(await found("trust=unauthenticated&direction=inbound&status=delivered")).toBe(1);
    expect(await found("trust=authenticated&q=only&to=" + box.address)).toBe(1);
    expect(await found("trust=blocked")).toBe(0);
    expect((await service.call("GET", "/v1/emails?trust=friend")).status).toBe(422);
  });

  test("of a message that comes ends a wait for it, and no other does", async () => {
    const box = await newBox();
    const waiting = service.call("GET", `/v1/emails?trust=authenticated&to=${box.address}&wait=30`);
    await send({ from: PROVEN, to: [box.address], by: null });
    await send({ from: PROVEN, to: [box.address] });
    const { data } = (await waiting).body;
    expect(data).toHaveLength(1);
    expect((await service.call("GET", `/v1/emails/${data[0].id}`)).body.sender.trust).toBe("authenticated");
  });

  test("is a condition of rules", async () => {
    const box = await newBox();
    const rule = {
      name: "Strangers",
      inboxId: box.id,
      when: { trust: "unauthenticated" },
      then: { archive: true },
    };
    const { id } = (await service.call("POST", "/v1/rules", rule)).body;
    const rules = [];
    for (const by of [FRIEND, null]) {
      await send({ from: PROVEN, to: [box.address], by });
      rules.push((await newest(box, "delivered")).rules.length);
    }
    expect(rules).toEqual([0, 1]);
    const { id: emailId } = await newest(box, "delivered");
    const tried = (await service.call("POST", "/v1/rules/try", { emailId })).body;
    expect(JSON.stringify(tried)).toContain(id);
  });
});
