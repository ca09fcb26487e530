import { afterAll, beforeAll, expect, test } from "bun:test";
import { sealMessage } from "mailauth/lib/arc";
import { dkimSign } from "mailauth/lib/dkim/sign";
import { domainToASCII } from "node:url";
import { type DkimKey, dkimRecord, generateDkimKey } from "../../src/mail/auth/dkim.ts";
import { deliverRaw } from "../support/mail-in.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";

// Each row of the table in docs/agents.md: a forgery, signed as its forger can, and its verdict.

/** Its policy refuses nothing, so that each forgery gets a record. */
const BANK = "bank.test";
const EVIL = "evil.test";
const LOOK_ALIKE = domainToASCII("bаnk.test");
const NO_RECORD = "no-record.test";
const CUT_OFF = "cut-off.test";

let service: TestService;
let key: DkimKey;

beforeAll(async () => {
  service = await startService();
  await receivingInboxes(service, "in.test", ["a@in.test"]);
  key = await generateDkimKey();
  const data = dkimRecord(key.publicKeyBase64).match(/.{1,255}/g) ?? [];
  for (const domain of [BANK, EVIL, LOOK_ALIKE, NO_RECORD, CUT_OFF]) {
    if (domain === CUT_OFF) service.dns.behave("servfail", `k._domainkey.${domain}`);
    else service.dns.add({ name: `k._domainkey.${domain}`, type: "TXT", data });
    if (domain !== NO_RECORD)
      service.dns.add({ name: `_dmarc.${domain}`, type: "TXT", data: "v=DMARC1; p=none" });
    const spf = domain === EVIL ? "v=spf1 ip4:127.0.0.1 -all" : "v=spf1 -all";
    service.dns.add({ name: domain, type: "TXT", data: spf });
  }
  await service.call("POST", "/v1/contacts", { email: `friend@${BANK}` });
});
afterAll(() => service.stop());

interface Signing {
  by: string;
  maxBodyLength?: number;
  expires?: Date;
}

function mail(from: string | readonly string[], more: readonly string[] = []): string {
  const fields = [from].flat().map((value) => `From: ${value}`);
  return [...fields, "To: a@in.test", "Subject: Pay this", ...more, "", "Please pay."].join("\r\n") + "\r\n";
}

async function signed(raw: string, { by, ...options }: Signing): Promise<string> {
  const { signatures } = await dkimSign(Buffer.from(raw), {
    ...options,
    signTime: new Date(Date.now() - 2 * 86_400_000),
    signatureData: [{ signingDomain: by, selector: "k", privateKey: key.privateKeyPem, ...options }],
  } as Parameters<typeof dkimSign>[1]);
  expect(signatures).toContain(`d=${by}`);
  if (options.expires !== undefined) expect(signatures).toMatch(/\bx=\d/);
  if (options.maxBodyLength !== undefined) expect(signatures).toMatch(/\bl=13\b/);
  return signatures + raw;
}

async function sealed(raw: string): Promise<string> {
  const seal = await sealMessage(Buffer.from(raw), {
    signingDomain: EVIL,
    selector: "k",
    privateKey: key.privateKeyPem,
    authResults: `${EVIL}; dmarc=pass header.from=${BANK}`,
    cv: "none",
  });
  return seal.toString() + raw;
}

/** Delivers the bytes from a host that the SPF record of evil.test names. Returns the last reply. */
const deliver = (raw: string, mailFrom: string): Promise<string> =>
  deliverRaw(service.smtpPort, { to: "a@in.test", mailFrom }, raw);

async function recordOf(raw: string, mailFrom = `x@${EVIL}`) {
  const id = /msg_[0-9a-z]{26}/.exec(await deliver(raw, mailFrom))?.[0];
  return (await service.call("GET", `/v1/emails/${id}`)).body;
}

const CEO = `ceo@${BANK}`;
const byBank = (raw: string) => signed(raw, { by: BANK });
const byEvil = (raw: string) => signed(raw, { by: EVIL });

const ROWS: readonly [name: string, make: () => Promise<string> | string, address: string, trust: string][] =
  [
    ["the author's own signature proves the author", () => byBank(mail(CEO)), CEO, "authenticated"],
    [
      "a contact's own signature makes it known",
      () => byBank(mail(`friend@${BANK}`)),
      `friend@${BANK}`,
      "known",
    ],
    [
      "a forger writes a contact's address",
      () => mail(`friend@${BANK}`),
      `friend@${BANK}`,
      "unauthenticated",
    ],
    ["the envelope passes SPF for another domain", () => mail(CEO), CEO, "unauthenticated"],
    [
      "the display name is an address",
      () => byEvil(mail(`"${CEO}" <x@${EVIL}>`)),
      `x@${EVIL}`,
      "authenticated",
    ],
    [
      "the display name is an address in an encoded word",
      () => byEvil(mail(`=?utf-8?q?ceo=40${BANK}?= <x@${EVIL}>`)),
      `x@${EVIL}`,
      "authenticated",
    ],
    [
      "a look-alike domain has its own records",
      () => signed(mail(`ceo@${LOOK_ALIKE}`), { by: LOOK_ALIKE }),
      `ceo@${LOOK_ALIKE}`,
      "authenticated",
    ],
    [
      "Reply-To names someone else",
      () => byEvil(mail(`x@${EVIL}`, [`Reply-To: ${CEO}`])),
      `x@${EVIL}`,
      "authenticated",
    ],
    ["there are two From fields", () => byEvil(mail([`x@${EVIL}`, CEO])), `x@${EVIL}`, "unauthenticated"],
    ["From has two addresses", () => byEvil(mail(`x@${EVIL}, ${CEO}`)), `x@${EVIL}`, "unauthenticated"],
    [
      "From has two addresses of one domain",
      () => byBank(mail(`${CEO}, boss@${BANK}`)),
      CEO,
      "unauthenticated",
    ],
    ["From is a group", () => byEvil(mail(`Board: ${CEO};`)), CEO, "unauthenticated"],
    ["From is at a subdomain", () => byEvil(mail(`ceo@pay.${BANK}`)), `ceo@pay.${BANK}`, "unauthenticated"],
    ["the signature is a third party's", () => byEvil(mail(CEO)), CEO, "unauthenticated"],
    [
      "text is added below a signature with l=",
      async () => `${await signed(mail(CEO), { by: BANK, maxBodyLength: 13 })}And this too.\r\n`,
      CEO,
      "unauthenticated",
    ],
    ["another server forwards the message unchanged", () => byBank(mail(CEO)), CEO, "authenticated"],
    [
      "a mailing list changes the subject",
      async () => (await byBank(mail(CEO))).replace("Subject: ", "Subject: [list] "),
      CEO,
      "unauthenticated",
    ],
    ["an ARC seal claims that it passed", () => sealed(mail(CEO)), CEO, "unauthenticated"],
    [
      "the signature has expired",
      () => signed(mail(CEO), { by: BANK, expires: new Date(Date.now() - 86_400_000) }),
      CEO,
      "unauthenticated",
    ],
    ["a comment splits the domain", () => byEvil(mail(`ceo@bank(.evil).test`)), "", "unauthenticated"],
    [
      "the domain has no DMARC record",
      () => signed(mail(`ceo@${NO_RECORD}`), { by: NO_RECORD }),
      `ceo@${NO_RECORD}`,
      "unauthenticated",
    ],
    [
      "the key cannot be looked up",
      () => signed(mail(`ceo@${CUT_OFF}`), { by: CUT_OFF }),
      `ceo@${CUT_OFF}`,
      "unauthenticated",
    ],
  ];

test.each(ROWS)("the verdict on the sender if %s", async (_, make, address, trust) => {
  const { sender } = await recordOf(await make());
  const authenticated = trust !== "unauthenticated";
  expect(sender).toMatchObject({ authenticated, known: trust === "known", trust });
  if (address !== "") expect(sender.address).toBe(address);
});

test("a message with the null sender is judged by its From", async () => {
  expect((await recordOf(mail(CEO), "")).sender).toMatchObject({ trust: "unauthenticated" });
  expect((await recordOf(await byBank(mail(CEO)), "")).sender).toMatchObject({ trust: "authenticated" });
});

test("a bare CR in From is refused before anyone reads it", async () => {
  expect(await deliver(mail(`x@${EVIL}\rFrom: ${CEO}`), `x@${EVIL}`)).toStartWith("550 5.5.2");
});

test("a sender that was written to in the thread is known there, and in no other thread", async () => {
  const first = await recordOf(await byBank(mail(CEO, ["Message-ID: <one@bank.test>"])));
  expect(first.sender).toMatchObject({ trust: "authenticated" });
  const reply = await service.call("POST", `/v1/threads/${first.threadId}/reply`, { text: "Why?" });
  const { messageId } = (await service.call("GET", `/v1/emails/${reply.body.id}`)).body;
  const answer = mail(CEO, [`In-Reply-To: ${messageId}`]);
  expect((await recordOf(await byBank(answer))).sender).toMatchObject({ known: true, trust: "known" });
  expect((await recordOf(answer)).sender).toMatchObject({ known: false, trust: "unauthenticated" });
  expect((await recordOf(await byBank(mail(CEO)))).sender).toMatchObject({ trust: "authenticated" });
});

test("a simulated message is of an unauthenticated sender", async () => {
  const [inbox] = (await service.call("GET", "/v1/inboxes")).body.data;
  const body = { inboxId: inbox.id, from: `friend@${BANK}`, text: "Hi" };
  const { messageId } = (await service.call("POST", "/v1/inbound/simulate", body)).body;
  const { sender } = (await service.call("GET", `/v1/emails/${messageId}`)).body;
  expect(sender).toEqual({
    address: `friend@${BANK}`,
    authenticated: false,
    known: false,
    trust: "unauthenticated",
  });
});
