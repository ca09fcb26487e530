import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { systemClock } from "../../src/clock.ts";
import { loadConfig } from "../../src/config.ts";
import { openZone } from "../../src/flows/zone/service-zone.ts";
import { MAX_SHARED_BCC } from "../../src/flows/deliver/render.ts";
import { deliver } from "../support/mail-in.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

const LIMIT_MS = 30_000;
let service: TestService;
let relay: TestMx;

beforeAll(async () => {
  relay = startMx();
  service = await startService({
    DELIVERY: "relay",
    SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}`,
    SERVICE_SIGNATURE: "1",
  });
  await receivingInboxes(service, "in.test", ["ann@in.test"]);
  service.dns.add({ name: "proven.test", type: "TXT", data: "v=spf1 ip4:127.0.0.1 -all" });
}, LIMIT_MS);
afterAll(async () => {
  await service?.stop();
  relay?.stop();
});

/** Sends a message and returns its id and the copies that left, by recipient. */
async function send(item: Record<string, unknown>): Promise<{ id: string; copies: Map<string, string> }> {
  const before = relay.messages.items.length;
  const mail = { from: { email: "ann@in.test" }, subject: "Hi", text: "x", ...item };
  const { id } = (await service.call("POST", "/v1/emails", mail)).body;
  await service.message(id, "sent");
  const left = relay.messages.items.slice(before);
  return { id, copies: new Map(left.map(({ rcptTo, data }) => [String(rcptTo), data.toString("latin1")])) };
}

function fieldOf(raw: string, name: string): string {
  return new RegExp(`^${name}: *(.*)$`, "im").exec(raw)?.[1]?.trim() ?? "";
}

/** Delivers a complaint of a proven provider that quotes these fields of the message. */
function complain(fields: readonly string[]): Promise<string> {
  const body = [
    "--b",
    "Content-Type: message/feedback-report",
    "",
    "Feedback-Type: abuse",
    "Version: 1",
    "",
    "--b",
    "Content-Type: text/rfc822-headers",
    "",
    ...fields,
    "",
    "--b--",
    "",
  ].join("\r\n");
  const headers = [
    "From: fbl@proven.test",
    "MIME-Version: 1.0",
    'Content-Type: multipart/report; report-type=feedback-report; boundary="b"',
  ];
  const to = `fbl@${SERVICE_DOMAIN}`;
  return deliver(service, { to, mailFrom: "fbl@proven.test", headers, body });
}

async function complained(id: string): Promise<string[]> {
  const { recipients } = (await service.call("GET", `/v1/emails/${id}`)).body;
  return recipients
    .filter(({ status }: { status: string }) => status === "complained")
    .map(({ email }: { email: string }) => email);
}

describe("with SERVICE_SIGNATURE", () => {
  test("the service signs below the From domain, with the key that its zone publishes", async () => {
    const { copies } = await send({ to: ["far@one.test"] });
    const raw = copies.get("far@one.test") ?? "";
    const settings = { ...loadConfig({}), serviceDomain: SERVICE_DOMAIN };
    const zone = await openZone({ db: service.app.db, clock: systemClock }, settings);
    const resolver = async (name: string) => {
      const own = zone.records.find((record) => record.name === name && record.type === "TXT");
      if (own === undefined) throw Object.assign(new Error(name), { code: "ENOTFOUND" });
      return [[String(own.data)]];
    };
    const { results } = await dkimVerify(Buffer.from(raw, "latin1"), { resolver });
    expect(results.map(({ signingDomain }) => signingDomain)).toEqual(["in.test", SERVICE_DOMAIN]);
    expect(results.at(-1)?.status.result).toBe("pass");
  });

  // RFC 9477 §3.1: both fields are in `h=` of both signatures.
  test("each signature covers the fields that ask for complaints, and a complaint with them finds its recipient", async () => {
    const { id, copies } = await send({ to: ["far@one.test"] });
    const raw = copies.get("far@one.test") ?? "";
    expect(fieldOf(raw, "CFBL-Address")).toBe(`fbl@${SERVICE_DOMAIN}; report=arf`);
    const token = fieldOf(raw, "CFBL-Feedback-ID");
    expect(token).toMatch(/^[0-9a-z]+$/);
    const lists = raw.match(/ h=[^;]+;/g) ?? [];
    expect(lists).toHaveLength(2);
    for (const list of lists) expect(list.replace(/\s/g, "")).toContain(":cfbl-address:cfbl-feedback-id:");
    expect(await complain([`CFBL-Feedback-ID: ${token}`])).toStartWith("250");
    expect(await complained(id)).toEqual(["far@one.test"]);
  });
});

describe("hidden recipients", () => {
  const hidden = (count: number) => Array.from({ length: count }, (_, at) => `h${at}@bcc${count}.test`);
  const idsOf = (copies: Map<string, string>) =>
    [...copies.values()].map((raw) => fieldOf(raw, "Message-ID"));

  test(`up to ${MAX_SHARED_BCC} share the Message-ID of the others`, async () => {
    const { copies } = await send({ to: ["to@one.test"], bcc: hidden(MAX_SHARED_BCC) });
    expect(copies.size).toBe(MAX_SHARED_BCC + 1);
    expect(new Set(idsOf(copies)).size).toBe(1);
  });

  test("one more, and each has its own, by which its answers join the thread and a complaint names it", async () => {
    const bcc = hidden(MAX_SHARED_BCC + 1);
    const { id, copies } = await send({ to: ["to@one.test", bcc[0]], cc: ["cc@one.test"], bcc });
    const ids = idsOf(copies);
    const shared = `<${id}@in.test>`;
    // The hidden recipient that is in To, too, has the copy of the others.
    expect(ids.filter((each) => each === shared)).toHaveLength(3);
    expect(new Set(ids).size).toBe(bcc.length);
    const own = fieldOf(copies.get(bcc[5] ?? "") ?? "", "Message-ID");
    expect(own).toMatch(new RegExp(`^<${id}\\.\\d+@in\\.test>$`));
    const { threadId } = (await service.call("GET", `/v1/emails/${id}`)).body;
    const headers = ["From: h5@far.test", "Subject: Re: Hi", `In-Reply-To: ${own}`, `References: ${own}`];
    expect(await deliver(service, { to: "ann@in.test", mailFrom: "h5@far.test", headers })).toStartWith(
      "250",
    );
    const { messages } = (await service.call("GET", `/v1/threads/${threadId}`)).body;
    expect(messages).toHaveLength(2);
    expect(await complain([`Message-ID: ${own}`])).toStartWith("250");
    expect(await complained(id)).toEqual([bcc[5] ?? ""]);
    expect(await complain([`Message-ID: ${shared}`])).toStartWith("250");
    expect(await complained(id)).toHaveLength(1);
  });
});
