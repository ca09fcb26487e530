import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { runReading } from "../../src/flows/mime/reading-tasks.ts";
import { createInboundHandler } from "../../src/flows/receive/inbound-handler.ts";
import { publish } from "../support/dns.ts";
import { deliver, letterLines } from "../support/mail-in.ts";
import { SERVICE_DOMAIN, startService, type TestService, verifiedDomain } from "../support/service.ts";
import { limitsOf } from "../../src/flows/deliver/reputation.ts";

/** Number of projects that one message addresses. */
const PROJECTS = 3;
const REFUSED = "550 5.7.1";

let service: TestService;
const keys: string[] = [];
const addresses: string[] = [];

beforeAll(async () => {
  service = await startService();
  service.dns.add({ name: "_dmarc.bank.test", type: "TXT", data: "v=DMARC1; p=reject" });
  service.dns.add({ name: "bank.test", type: "TXT", data: "v=spf1 -all" });
  for (let at = 0; at < PROJECTS; at++) await newProject(`in${at}.test`);
});
afterAll(() => service.stop());

async function newProject(domain: string): Promise<void> {
  const options = { key: service.accountKey };
  const project = await service.call("POST", "/v1/senders", { name: domain }, options);
  const made = await service.call("POST", "/v1/api-keys", { name: "k", senderId: project.body.id }, options);
  const key: string = made.body.secret;
  const id = await verifiedDomain(service, domain, key);
  const receiving = await service.call("PATCH", `/v1/domains/${id}/receiving`, { enabled: true }, { key });
  publish(service.dns, receiving.body.records);
  await service.call("POST", "/v1/inboxes", { address: `box@${domain}` }, { key });
  keys.push(key);
  addresses.push(`box@${domain}`);
}

/** Each project's part of the message with that subject. */
async function recorded(subject: string) {
  return Promise.all(
    keys.map(async (key) => {
      const listed = await service.call("GET", `/v1/emails?direction=inbound&q=${subject}`, undefined, {
        key,
      });
      const [first] = listed.body.data;
      return (await service.call("GET", `/v1/emails/${first.id}`, undefined, { key })).body;
    }),
  );
}

const mailWith = (subject: string, fields: readonly string[]) => ({
  to: addresses,
  mailFrom: "x@bank.test",
  headers: ["From: x@bank.test", `Subject: ${subject}`, ...fields],
});

test("the fields of a refused message are recorded in each project, also those that are stored in several pieces", async () => {
  const value = "v".repeat(4000);
  const fields = Array.from({ length: 150 }, (_, at) => `X-${at}: ${value}${at}`);
  expect(await deliver(service, mailWith("pieces", fields))).toStartWith(REFUSED);
  for (const { status, headers } of await recorded("pieces")) {
    expect(status).toBe("inbound_rejected");
    expect([headers["X-0"], headers["X-149"]]).toEqual([`${value}0`, `${value}149`]);
  }
});

/** Answers as the name servers of a domain whose policy is to refuse forged mail. */
async function resolve(name: string): Promise<string[][]> {
  if (name === "_dmarc.bank.test") return [["v=DMARC1; p=reject"]];
  throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
}

test("the header of a refused message is not parsed again for its inboxes, once for each project", async () => {
  const letter = Buffer.from(letterLines(mailWith("once", ["X-Read: elsewhere"])).join("\r\n"));
  const asking = { clock: systemClock, host: "mx.test", resolve };
  const { db, queue } = service.app;
  const door = createInboundHandler({
    db,
    queue,
    clock: systemClock,
    hostname: `mx.${SERVICE_DOMAIN}`,
    serviceDomain: SERVICE_DOMAIN,
    verpKey: new Uint8Array(32),
    unsubscribeKey: new Uint8Array(32),
    // A header of a megabyte takes some fifty milliseconds, which belong in the threads that read mail.
    suspension: limitsOf(5),
    publicIps: [],
    dmarcReporters: [],
    inspect: (asked) => runReading(asking, asked.kind === "mail" ? { ...asked, raw: letter } : asked),
  });
  const unread = Buffer.from("X-Read: here\r\n\r\n");
  const envelope = { mailFrom: "x@bank.test", rcptTo: addresses, ip: "192.0.2.1", helo: "x", tls: null };
  expect(await door.message({ ...envelope, smtpUtf8: false }, unread)).toMatchObject({ code: 550 });
  for (const { headers } of await recorded("once")) expect(headers["X-Read"]).toBe("elsewhere");
});

test("a refused message names no inbox that was deleted while it was recorded", async () => {
  const [key = ""] = keys;
  const box = (await service.call("POST", "/v1/inboxes", { address: "going@in0.test" }, { key })).body;
  const { db } = service.app;
  const write = db.write;
  db.write = async (statements) => {
    if (!statements.some(({ sql }) => sql.includes("INSERT INTO messages ")))
      return write.call(db, statements);
    db.write = write;
    expect((await service.call("DELETE", `/v1/inboxes/${box.id}`, undefined, { key })).status).toBe(204);
    return db.write(statements);
  };
  const mail = { ...mailWith("going", []), to: box.address };
  expect(await deliver(service, mail)).toStartWith("550 5.1.1");
  expect(await db.all("SELECT id FROM messages WHERE inbox_id = ?", [box.id])).toEqual([]);
});
