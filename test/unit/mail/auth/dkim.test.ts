import { beforeAll, describe, expect, test } from "bun:test";
import { createHash, createPublicKey, verify } from "node:crypto";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { DKIM_ALGORITHMS, type DkimAlgorithm } from "../../../../src/core/domains/dkim-keys.ts";
import {
  type DkimKey,
  type DkimSigner,
  dkimPrivateKey,
  dkimRecord,
  generateDkimKey,
  relaxedField,
  signDkim,
} from "../../../../src/mail/auth/dkim.ts";

const SELECTOR = { rsa: "pr1", ed25519: "pe1" } as const;

let keys: Record<DkimAlgorithm, DkimKey>;
let key: DkimKey;
beforeAll(async () => {
  keys = { rsa: await generateDkimKey(), ed25519: await generateDkimKey("ed25519") };
  key = keys.rsa;
});

function signerOf(algorithm: DkimAlgorithm): DkimSigner {
  return { selector: SELECTOR[algorithm], privateKey: dkimPrivateKey(keys[algorithm].privateKeyPem) };
}

/** The fields of which a reader would take one that was added for the author's. */
const SEALED = ["From", "To", "Cc", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type"];

/** The fields that a list or a gateway may add if the mail has none. */
const SEALED_IF_PRESENT = [
  "Reply-To",
  "Content-Transfer-Encoding",
  "In-Reply-To",
  "References",
  "List-Id",
  "List-Help",
  "List-Subscribe",
  "List-Post",
  "List-Owner",
  "List-Archive",
  "List-Unsubscribe",
  "List-Unsubscribe-Post",
  "CFBL-Address",
  "CFBL-Feedback-ID",
];

const MAIL = [
  "From: Ann <ann@example.com>",
  "To: bob@example.org",
  "Subject:  A  subject\t that is",
  "\tfolded ",
  "Message-ID: <m1@example.com>",
  "List-Unsubscribe: <https://example.com/u>",
  "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
  "X-Other: not signed",
  "MIME-Version: 1.0",
  "",
  "Hello  Bob, \t",
  "",
  " indented",
  "",
  "",
  "",
].join("\r\n");

function signed(
  raw: string | Buffer = MAIL,
  domain = "example.com",
  by: readonly DkimAlgorithm[] = ["rsa"],
): Promise<Buffer> {
  return signDkim({ raw: Buffer.from(raw), domain, keys: by.map(signerOf), signedAt: 1_700_000_000_999 });
}

/** Verdicts of mailauth on each signature, from the top. */
async function verdicts(raw: Buffer): Promise<string[]> {
  const resolver = async (name: string, type: string) => {
    const algorithm = DKIM_ALGORITHMS.find((each) => name === `${SELECTOR[each]}._domainkey.example.com`);
    if (algorithm === undefined || type !== "TXT") throw new Error(`${name} ${type} was looked up`);
    return [[dkimRecord(keys[algorithm].publicKeyBase64, algorithm)]];
  };
  const { results } = await dkimVerify(raw, { resolver });
  return results.map(({ status }) => status.result);
}

async function verdict(raw: Buffer): Promise<string | undefined> {
  return (await verdicts(raw))[0];
}

/** A second verifier, written from RFC 6376 §6 and independent of the signer. */
function verifiesByHand(raw: Buffer): boolean {
  const text = raw.toString("latin1");
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const fields = head.split(/\r\n(?![ \t])/);
  const relax = (field: string) => {
    const colon = field.indexOf(":");
    const value = field
      .slice(colon + 1)
      .replace(/\r\n/g, "")
      .replace(/[ \t]+/g, " ")
      .replace(/^ | $/g, "");
    return `${field.slice(0, colon).toLowerCase()}:${value}`;
  };
  const signature = fields[0] ?? "";
  const tags = new Map(
    signature
      .slice(15)
      .split(";")
      .map((tag) => tag.replace(/\s/g, "").split(/=(.*)/s) as [string, string]),
  );
  const body = rest
    .join("\r\n\r\n")
    .split("\r\n")
    .map((line) => line.replace(/[ \t]+/g, " ").replace(/ $/, ""));
  while (body.length > 0 && body[body.length - 1] === "") body.pop();
  const bodyHash = createHash("sha256")
    .update(Buffer.from(body.map((line) => `${line}\r\n`).join(""), "latin1"))
    .digest("base64");
  const left = fields.slice(1);
  const covered = (tags.get("h") ?? "").split(":").flatMap((name) => {
    const at = left.findLastIndex((field) => field.toLowerCase().startsWith(`${name}:`));
    return at < 0 ? [] : left.splice(at, 1).map(relax);
  });
  const input = [...covered, relax(signature).replace(/\bb=[A-Za-z0-9+/= ]*$/, "b=")].join("\r\n");
  const spki = createPublicKey({
    key: Buffer.from(key.publicKeyBase64, "base64"),
    format: "der",
    type: "spki",
  });
  return (
    tags.get("bh") === bodyHash &&
    verify("sha256", Buffer.from(input, "latin1"), spki, Buffer.from(tags.get("b") ?? "", "base64"))
  );
}

describe("a signed mail", () => {
  test.each([
    ["a common mail", MAIL],
    ["an empty body", "From: a@example.com\r\n\r\n"],
    ["a body of empty lines", "From: a@example.com\r\n\r\n\r\n\r\n"],
    ["a body without a last line end", "From: a@example.com\r\n\r\nabc"],
    [
      "a header beyond ASCII that ends in the octet A0",
      "From: a@example.com\r\nSubject: voil\u00e0\r\n\r\nx\r\n",
    ],
    ["a field named twice", "From: a@example.com\r\nTo: a@x.example\r\nTo: b@x.example\r\n\r\nx\r\n"],
  ])("a signed mail passes two verifiers: %s", async (_name, raw) => {
    const mail = await signed(raw);
    expect(await verdict(mail)).toBe("pass");
    expect(verifiesByHand(mail)).toBe(true);
    expect(mail.subarray(mail.length - Buffer.byteLength(raw)).equals(Buffer.from(raw))).toBe(true);
  });

  test("a signed mail is signed rsa-sha256, relaxed/relaxed, and names each field once more than it occurs", async () => {
    const field = (await signed()).toString().split("\r\nFrom:", 1)[0]?.replace(/\s+/g, "") ?? "";
    expect(field).toStartWith(
      "DKIM-Signature:v=1;a=rsa-sha256;c=relaxed/relaxed;d=example.com;s=pr1;t=1700000000;bh=",
    );
    const present = "from:to:subject:message-id:mime-version:list-unsubscribe:list-unsubscribe-post";
    const sealed = [...SEALED, "List-Unsubscribe", "List-Unsubscribe-Post"].join(":").toLowerCase();
    expect(field).toContain(`;h=${present}:${sealed};b=`);
  });

  test.each(SEALED)(
    "a signed mail is broken by a %s that is added, whether it has one or not",
    async (name) => {
      for (const mail of [MAIL, `From: a@example.com\r\n${name}: x\r\n\r\nx\r\n`]) {
        const added = `${name}: <mailto:mallory@evil.example>\r\n${(await signed(mail)).toString()}`;
        expect(await verdict(Buffer.from(added))).toBe("fail");
        expect(verifiesByHand(Buffer.from(added))).toBe(false);
      }
    },
  );

  test.each(SEALED_IF_PRESENT)(
    "a signed mail is broken by a second %s, and not by the first",
    async (name) => {
      const added = `${name}: <mailto:list@example.net>\r\n`;
      for (const [mail, expected] of [
        [`From: a@example.com\r\n${name}: x\r\n\r\nx\r\n`, "fail"],
        ["From: a@example.com\r\n\r\nx\r\n", "pass"],
      ] as const)
        expect(await verdict(Buffer.from(added + (await signed(mail)).toString()))).toBe(expected);
    },
  );

  test("a signed mail passes after a mailing list added its fields", async () => {
    const list = ["List-Id: <l.example.net>", "List-Post: <mailto:l@example.net>", "Reply-To: l@example.net"];
    const mail = (await signed()).toString();
    expect(await verdict(Buffer.from(`${list.join("\r\n")}\r\n${mail}`))).toBe("pass");
  });

  test("signs the fields of a list, and the one by which Gmail counts complaints", async () => {
    const names = ["List-Id", "List-Help", "List-Subscribe", "List-Post", "List-Owner", "List-Archive"];
    const fields = [...names, "Feedback-ID"].map((name) => `${name}: <https://example.com/x>\r\n`);
    const mail = await signed(`From: a@example.com\r\n${fields.join("")}\r\nx\r\n`);
    expect(await verdict(mail)).toBe("pass");
    for (const field of fields)
      expect(await verdict(Buffer.from(mail.toString().replace(`\r\n${field}`, "\r\n")))).not.toBe("pass");
  });

  test("a signed mail has no line over 78 characters in its signature", async () => {
    const names = ["To", "Cc", "Reply-To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type"];
    const further = ["Content-Transfer-Encoding", "References", "List-Unsubscribe", "List-Unsubscribe-Post"];
    const domain = "news.mail.department.subsidiary.example.com";
    for (let count = 0; count <= names.length + further.length; count++) {
      const present = [...names, ...further].slice(0, count).map((name) => `${name}: x\r\n`);
      const mail = await signed(`From: a@example.com\r\n${present.join("")}\r\nx\r\n`, domain);
      const lines = mail.toString().split("\r\nFrom:", 1)[0]?.split("\r\n") ?? [];
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(78);
    }
  });

  test.each<[string, (mail: string) => string, string]>([
    [
      "spaces at line ends and empty lines at the end change",
      (mail) => mail.replace("Bob, \t", "Bob,").concat("\r\n\r\n"),
      "pass",
    ],
    ["a field that is not signed changes", (mail) => mail.replace("not signed", "altered"), "pass"],
    ["the body changes", (mail) => mail.replace("indented", "Indented"), "neutral"],
    ["the subject changes", (mail) => mail.replace("A  subject", "B  subject"), "fail"],
    ["a second From is put in front", (mail) => `From: evil@example.net\r\n${mail}`, "fail"],
    ["a second Subject is put in front", (mail) => `Subject: You have won\r\n${mail}`, "fail"],
    ["a second To is put in front", (mail) => `To: victim@example.net\r\n${mail}`, "fail"],
    [
      "a second MIME-Version is added after it",
      (mail) => mail.replace("\r\n\r\n", "\r\nMIME-Version: 1.0$&"),
      "fail",
    ],
    ["a forwarder adds its own fields", (mail) => `Sender: l@example.net\r\nX-List: l\r\n${mail}`, "pass"],
  ])("a signed mail has its verdict if %s", async (_name, change, expected) => {
    const result = await verdict(Buffer.from(change((await signed()).toString("latin1")), "latin1"));
    expect(result).toBe(expected);
  });

  test.each([
    ["example.com\r\nBcc: x@y.example", "pr1"],
    ["example.com", "pr1; d=evil.example"],
    ["Example.com", "pr1"],
    ["", "pr1"],
    ["example.com", ""],
  ])("a signed mail is not made for domain %j and selector %j", async (domain, selector) => {
    const keys = [{ ...signerOf("rsa"), selector }];
    await expect(signDkim({ raw: Buffer.from(MAIL), domain, keys })).rejects.toThrow();
  });

  test("a signed mail needs a From", async () => {
    await expect(signed("To: a@example.com\r\n\r\nx\r\n")).rejects.toThrow("From");
  });
});

describe("Ed25519 (RFC 8463)", () => {
  test("signs alone, the same bytes at each attempt", async () => {
    const mail = await signed(MAIL, "example.com", ["ed25519"]);
    expect(mail.toString()).toStartWith(
      "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n d=example.com;\r\n s=pe1;",
    );
    expect(await verdicts(mail)).toEqual(["pass"]);
    expect(mail).toEqual(await signed(MAIL, "example.com", ["ed25519"]));
  });

  test("signs next to RSA. Each signature holds without the other, with the same body hash", async () => {
    const mail = await signed(MAIL, "example.com", ["rsa", "ed25519"]);
    expect(await verdicts(mail)).toEqual(["pass", "pass"]);
    const [first = "", second = ""] = mail.toString("latin1").split(/^(?=DKIM-Signature:)/m);
    expect(await verdicts(Buffer.from(second, "latin1"))).toEqual(["pass"]);
    expect(await verdicts(Buffer.from(first + MAIL, "latin1"))).toEqual(["pass"]);
    const hashes = [first, second].map((field) => / bh=(\S+);/.exec(field)?.[1]);
    expect(hashes[0]).toBe(hashes[1] ?? "none");
  });

  test("an Ed25519 signature of a changed message fails", async () => {
    const mail = (await signed(MAIL, "example.com", ["rsa", "ed25519"])).toString("latin1");
    const forged = mail.replace("A  subject", "B  subject");
    expect(await verdicts(Buffer.from(forged, "latin1"))).toEqual(["fail", "fail"]);
  });

  test("publishes the bare key of 32 octets", () => {
    const { publicKeyBase64, privateKeyPem } = keys.ed25519;
    expect(Buffer.from(publicKeyBase64, "base64")).toHaveLength(32);
    const { x } = createPublicKey(privateKeyPem).export({ format: "jwk" });
    expect(Buffer.from(x ?? "", "base64url").toString("base64")).toBe(publicKeyBase64);
    expect(dkimRecord("11qYAYKx", "ed25519")).toBe("v=DKIM1; k=ed25519; p=11qYAYKx");
  });
});

describe("canonicalization (RFC 6376 §3.4)", () => {
  test.each([
    ["A: X ", "a:X"],
    ["B : Y\t\r\n\tZ  ", "b:Y Z"],
  ])("the field %j is canonicalized (RFC 6376 §3.4)", (line, expected) => {
    expect(relaxedField({ name: line.slice(0, 1).toLowerCase(), line })).toBe(expected);
  });
});

test("a generated key is RSA of 2048 bits, published as SubjectPublicKeyInfo", () => {
  const publicKey = createPublicKey({
    key: Buffer.from(key.publicKeyBase64, "base64"),
    format: "der",
    type: "spki",
  });
  expect(publicKey.asymmetricKeyType).toBe("rsa");
  expect(publicKey.asymmetricKeyDetails?.modulusLength).toBe(2048);
  expect(dkimRecord("MIIB")).toBe("v=DKIM1; k=rsa; p=MIIB");
});
