import { afterEach, beforeAll, expect, setSystemTime, test } from "bun:test";
import { dkimSign } from "mailauth/lib/dkim/sign";
import type { AuthResolver } from "../../../../src/mail/auth/resolver.ts";
import { type AuthEnvelope, authenticate } from "../../../../src/mail/auth/authenticate.ts";
import { CheckMemory } from "../../../../src/mail/auth/check-memory.ts";
import { dkimRecord, generateDkimKey } from "../../../../src/mail/auth/dkim.ts";

const HOST = "mx.example.org";
const NEVER = new AbortController().signal;
const zone = new Map<string, unknown[]>([
  ["TXT bank.test", [["v=spf1 ip4:192.0.2.1 -all"]]],
  ["TXT _dmarc.bank.test", [["v=DMARC1; p=reject"]]],
  ["TXT shop.test", [["v=spf1 ip4:192.0.2.2 -all"]]],
  ["TXT out.bank.test", [["v=spf1 ip4:192.0.2.1 -all"]]],
]);
const resolve: AuthResolver = async (name, type) => {
  const records = zone.get(`${type} ${name}`);
  if (records === undefined) throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
  return records;
};
const mailOf = (from: string) => Buffer.from(`From: ${from}\r\nSubject: Hi\r\n\r\nHi\r\n`);

let privateKey: string;
beforeAll(async () => {
  const key = await generateDkimKey();
  privateKey = key.privateKeyPem;
  zone.set("TXT s1._domainkey.bank.test", [[dkimRecord(key.publicKeyBase64)]]);
});
afterEach(() => void setSystemTime());

async function signed(mail: Buffer, expires?: Date): Promise<Buffer> {
  const by = { signingDomain: "bank.test", selector: "s1", privateKey };
  const ending = expires === undefined ? {} : { expires };
  const { signatures } = await dkimSign(mail, { ...by, ...ending, signatureData: [by] });
  return Buffer.concat([Buffer.from(signatures), mail]);
}

test("remembered checks of other messages never change a result", async () => {
  const addresses = ["192.0.2.1", "192.0.2.2"];
  const names = ["out.bank.test", "out.shop.test"];
  const paths = ["", "ann@bank.test", "bob@shop.test"];
  const envelopes: AuthEnvelope[] = addresses.flatMap((ip) =>
    names.flatMap((helo) => paths.map((mailFrom) => ({ ip, helo, mailFrom }))),
  );
  const plain = [
    "ann@bank.test",
    "bob@shop.test",
    "ann@bank.test, bob@shop.test",
    // Of several fields two are checked, and all are shown.
    ...["bob", "ann"].map(
      (last) => `a@x.test\r\nFrom: b@x.test\r\nFrom: ${last}@${last === "ann" ? "bank" : "shop"}.test`,
    ),
    // Equal authors in one field and in two.
    "bob@shop.test, bob@shop.test",
    "bob@shop.test\r\nFrom: bob@shop.test",
    // The records look alike but are read differently.
    "bob@shop.test\r\nFrom\t: ann@bank.test",
    "bob@shop.test\r\nno field\r\n From: ann@bank.test",
    "bob@shop.test",
    "bob@shop(.bank).test",
    "bob@shop.\r\n test",
  ].map(mailOf);
  const mails = [...plain, await signed(mailOf("ann@bank.test")), await signed(mailOf("bob@shop.test"))];
  const memory = new CheckMemory();
  const verdicts = new Set<string>();
  for (const mail of mails)
    for (const envelope of envelopes) {
      const alone = await authenticate({ resolve, host: HOST }, envelope, mail, NEVER);
      const beside = await authenticate({ resolve, host: HOST, memory }, envelope, mail, NEVER);
      expect({ envelope, ...beside }).toEqual({ envelope, ...alone });
      verdicts.add(JSON.stringify(alone.verdict));
    }
  expect(memory.size).toBeGreaterThan(plain.length * envelopes.length);
  expect(verdicts.size).toBeGreaterThan(mails.length);
});

test("a signature expires on time, even if its message was checked before", async () => {
  const memory = new CheckMemory();
  const mail = await signed(mailOf("ann@bank.test"), new Date(Date.now() + 60_000));
  const envelope = { ip: "192.0.2.2", helo: "out.shop.test", mailFrom: "bob@shop.test" };
  const dkim = async () => {
    const { verdict } = await authenticate({ resolve, host: HOST, memory }, envelope, mail, NEVER);
    return verdict.dkim[0]?.result;
  };
  expect(await dkim()).toBe("pass");
  setSystemTime(Date.now() + 120_000);
  expect(await dkim()).not.toBe("pass");
});
