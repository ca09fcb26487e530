import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { DKIM_ALGORITHMS, type DkimAlgorithm } from "../../src/core/domains/dkim-keys.ts";
import { compose } from "../../src/mail/composing/compose.ts";
import { dkimPrivateKey, dkimRecord, generateDkimKey, signDkim } from "../../src/mail/auth/dkim.ts";
import { startDns, type TestDns } from "../support/dns.ts";
import { seeded, variedMail } from "../support/peers/varied-mail.ts";
import { type PublishedKey, VERIFIERS } from "../support/peers/verifiers.ts";
import { shareOf } from "../support/share.ts";

const MESSAGES = 1000;
const SEED = 20_261_121;
const DOMAIN = "sender.example";
const SELECTOR = "pr1";
/** Each verifier checks one message in three, from another start, so that together they check all. */
const SHARE = 3;
/** Characters that one string of a TXT record has (RFC 1035 §3.3). */
const TXT_STRING = 255;
/** Verifying takes an interpreter a few seconds, and the machine may be busy. */
const LIMIT_MS = 180_000;
setDefaultTimeout(LIMIT_MS);

/** A forgery that a verifier must detect: one changed octet of the signed part. */
const TAMPERINGS: readonly (readonly [what: string, change: (raw: string) => string])[] = [
  ["the body has one word more", (raw) => raw.replace("\r\n\r\n", "\r\n\r\nand ")],
  ["the subject has one letter more", (raw) => raw.replace(/\r\nSubject: ?/, "$&Z")],
  [
    "the date is another",
    (raw) => raw.replace(/(\r\nDate: .*:)(\d)/, (_, head, digit) => head + (9 - digit)),
  ],
  ["a second From is put in front", (raw) => `From: mallory@evil.example\r\n${raw}`],
  ["a Cc is put in front", (raw) => `Cc: mallory@evil.example\r\n${raw}`],
  ["a second Date is put in front", (raw) => `Date: Thu, 1 Jan 1970 00:00:00 +0000\r\n${raw}`],
  [
    "the signature has another letter",
    (raw) => raw.replace(/\r\n b=(.)/, (_, b) => `\r\n b=${b === "A" ? "B" : "A"}`),
  ],
];

/**
 * Messages that the composer never writes but signers meet: lines of the greatest length, in a body beyond ASCII.
 */
const LONG_LINES = Buffer.from(
  `${"x".repeat(998)}\r\n${" y\t".repeat(332)}\r\n${"é".repeat(499)}\r\n \r\n\r\n\r\n`,
);

/** The fields that a mailing list puts in front of a message that has none of them. */
const OF_A_LIST = [
  "List-Id: <friends.lists.example>",
  "List-Post: <mailto:friends@lists.example>",
  "List-Unsubscribe: <mailto:friends-leave@lists.example>",
  "List-Archive: <https://lists.example/friends>",
  "Reply-To: friends@lists.example",
  "Sender: friends-bounces@lists.example",
];

/** Messages signed with one key, and where the key is. */
interface Signed {
  messages: Buffer[];
  published: PublishedKey;
}

let dns: TestDns;
let signed: Record<DkimAlgorithm, Signed>;

async function signedBy(algorithm: DkimAlgorithm): Promise<Signed> {
  const key = await generateDkimKey(algorithm);
  const record = dkimRecord(key.publicKeyBase64, algorithm);
  const name = `${SELECTOR}-${algorithm}._domainkey.${DOMAIN}`;
  dns.add({ name, type: "TXT", data: record.match(new RegExp(`.{1,${TXT_STRING}}`, "g")) });
  const keys = [{ selector: `${SELECTOR}-${algorithm}`, privateKey: dkimPrivateKey(key.privateKeyPem) }];
  const random = seeded(SEED);
  const messages = await Promise.all(
    Array.from({ length: MESSAGES }, (_, at) => {
      const mail = variedMail(random, DOMAIN);
      const { raw } = compose(mail);
      const signing = { domain: DOMAIN, keys, signedAt: mail.date };
      return signDkim({ raw: at % 10 === 0 ? Buffer.concat([raw, LONG_LINES]) : raw, ...signing });
    }),
  );
  return { messages, published: { dnsPort: dns.port, name, record } };
}

beforeAll(async () => {
  dns = await startDns();
  signed = { rsa: await signedBy("rsa"), ed25519: await signedBy("ed25519") };
}, LIMIT_MS);
afterAll(() => dns?.stop());

test("the messages differ from one another", () => {
  const { messages } = signed.rsa;
  expect(new Set(messages.map((raw) => raw.toString("latin1"))).size).toBe(MESSAGES);
  const lines = messages.flatMap((raw) => raw.toString("latin1").split("\r\n"));
  expect(lines.reduce((longest, line) => Math.max(longest, line.length), 0)).toBe(998);
});

const titled = DKIM_ALGORITHMS.flatMap((algorithm) =>
  VERIFIERS.map((verifier) => {
    const { name } = verifier;
    const missing = verifier.missing ?? (algorithm === "ed25519" ? verifier.lacksEd25519 : null);
    const title = `${name}, ${algorithm}${missing === null ? "" : ` (skipped: ${missing})`}`;
    return [title, algorithm, { ...verifier, missing }] as const;
  }),
);

describe.each(titled)("%s", (_title, algorithm, { missing, verify, name }) => {
  const nth = VERIFIERS.findIndex((verifier) => verifier.name === name);
  test.skipIf(missing !== null)(
    `verifies each of one in ${SHARE} of ${MESSAGES} varied messages`,
    async () => {
      const { published } = signed[algorithm];
      const messages = shareOf(signed[algorithm].messages, SHARE, nth);
      const verdicts = await verify(messages, published);
      const refused = verdicts.flatMap((verdict, at) => (verdict === "pass" ? [] : [`${at}: ${verdict}`]));
      expect(refused).toEqual([]);
      expect(verdicts).toHaveLength(messages.length);
    },
  );

  test.skipIf(missing !== null)("verifies them after a mailing list has added its fields", async () => {
    const { messages, published } = signed[algorithm];
    const resent = messages
      .filter((_, at) => at % 100 === 0)
      .map((raw) => {
        const [header = ""] = raw.toString("latin1").split("\r\n\r\n", 1);
        const added = OF_A_LIST.filter((field) => !new RegExp(`^${field.split(":")[0]}:`, "im").test(header));
        return Buffer.concat([Buffer.from(added.map((field) => `${field}\r\n`).join("")), raw]);
      });
    expect(await verify(resent, published)).toEqual(resent.map(() => "pass"));
  });

  test.skipIf(missing !== null)("refuses each of them after a change", async () => {
    const { messages, published } = signed[algorithm];
    const sample = messages.filter((_, at) => at % 100 === 0).map((raw) => raw.toString("latin1"));
    const tampered = TAMPERINGS.flatMap(([what, change]) =>
      sample.map((raw) => ({
        what,
        unchanged: change(raw) === raw,
        raw: Buffer.from(change(raw), "latin1"),
      })),
    );
    expect(tampered.filter(({ unchanged }) => unchanged)).toEqual([]);
    const verdicts = await verify(
      tampered.map(({ raw }) => raw),
      published,
    );
    const passed = tampered.filter((_, at) => verdicts[at] === "pass").map(({ what }) => what);
    expect(passed).toEqual([]);
  });
});
