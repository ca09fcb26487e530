/** Messages and records that are bad for the checks of SPF, DKIM, ARC and DMARC. */
import { authenticate } from "../../../../src/mail/auth/authenticate.ts";
import { MAX_HEADER_OCTETS } from "../../../../src/mail/reading/raw-headers.ts";
import { MAX_MAIL_OCTETS } from "./mail.ts";
import { casesOf, filled, type WorstCase } from "./worst-case.ts";

/** Bytes of the TXT records in the largest answer of a name server. */
const MAX_RECORD_OCTETS = 60 * 1024;
const ENVELOPE = { ip: "192.0.2.1", helo: "mx.bank.example", mailFrom: "a@bank.example" };
const FROM = "From: a@bank.example\r\nTo: b@mail.test\r\nSubject: s\r\n";
/** The hash of an empty body: any other has to be read to its end. */
const HASH = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";

type Records = Readonly<Record<string, string>>;

/** Records in all cases: a sender policy, and a policy that refuses. */
const USUAL: Records = {
  "bank.example": "v=spf1 -all",
  "_dmarc.bank.example": "v=DMARC1; p=reject",
};
const KEY = "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC7";

interface Checked {
  raw: Buffer;
  records: Records;
}

function read({ raw, records }: Checked): Promise<unknown> {
  const resolve = (name: string, type: string): Promise<string[][]> => {
    const text = records[name] ?? USUAL[name] ?? (name.includes("._domainkey.") ? KEY : undefined);
    if (text === undefined || type !== "TXT")
      return Promise.reject(Object.assign(new Error("none"), { code: "ENOTFOUND" }));
    return Promise.resolve([[text]]);
  };
  const { signal } = new AbortController();
  return authenticate({ resolve, host: "mx.mail.test" }, ENVELOPE, raw, signal);
}

function signature(body: string, more = ""): string {
  return `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/${body}; d=bank.example; s=s; h=from:to;${more} bh=${HASH}; b=YWFh\r\n`;
}

type Shapes = Record<string, (octets: number) => Checked>;

const mailOf = (text: string): Checked => ({ raw: Buffer.from(text, "latin1"), records: {} });

/** Signed messages whose body repeats a piece. */
function bodies(kind: "relaxed" | "simple", pieces: readonly string[]): Shapes {
  const head = `${signature(kind)}${signature(kind).replace("s=s", "s=t")}${FROM}\r\n`;
  return Object.fromEntries(
    pieces.map((piece) => [
      `${kind} body ${JSON.stringify(piece)}`,
      (octets: number) => mailOf(`${head}${filled(piece, octets - head.length)}`),
    ]),
  );
}

function headers(kind: string, piece: (at: number) => string): Shapes {
  return {
    [kind]: (octets) => {
      const fields = [];
      for (let at = 0, left = octets - FROM.length; left > 0; at++) {
        const field = piece(at);
        fields.push(field);
        left -= field.length;
      }
      return mailOf(`${fields.join("")}${FROM}\r\nx`);
    },
  };
}

/** A signature with a tag that repeats a piece. */
function tags(name: string, pieces: readonly string[]): Shapes {
  return Object.fromEntries(
    pieces.map((piece) => [
      `${name} ${JSON.stringify(piece)}`,
      (octets: number) => mailOf(`${signature("relaxed", ` ${name}${filled(piece, octets)};`)}${FROM}\r\nx`),
    ]),
  );
}

const arcSet = (at: number): string =>
  [
    `ARC-Seal: i=${at + 1}; a=rsa-sha256; cv=pass; d=bank.example; s=s; b=YWFh\r\n`,
    `ARC-Message-Signature: i=${at + 1}; a=rsa-sha256; c=relaxed/relaxed; d=bank.example; s=s; h=from; bh=${HASH}; b=YWFh\r\n`,
    `ARC-Authentication-Results: i=${at + 1}; a; spf=pass\r\n`,
  ].join("");

const bodyShapes: Shapes = {
  ...bodies("relaxed", ["a ", "a", " ", "\r\n", "\n", "\r", "\t\r\n", "a  \r\n", "a \r\n \r\n", "\0"]),
  ...bodies("simple", ["a", "\r\n", "\n", "\r"]),
};

const headerShapes: Shapes = {
  ...headers("signatures", (at) => signature("relaxed").replace("s=s", `s=s${at}`)),
  ...headers("ARC sets", arcSet),
  ...headers("fields", () => "To: a\r\n"),
  ...headers("From fields", () => "From: a@bank.example\r\n"),
  ...tags("h=", ["a:", ":", "from:", " "]),
  ...tags("x=", ["a", " ", "=", "; y=", "\r\n "]),
  ...tags("l=", ["1"]),
  ...Object.fromEntries(
    ["<", "(", '"', "a@b, ", "\\", "@", ":", "(a) ", "a@", '"a" ', "%", "a . ", '"\\'].map((piece) => [
      `From ${JSON.stringify(piece)}`,
      (octets: number) => mailOf(`From: ${filled(piece, octets)}\r\n\r\nx`),
    ]),
  ),
};

/** A message whose check reads a record that repeats a piece. */
function records(name: string, begin: string, pieces: readonly string[], raw: string): Shapes {
  return Object.fromEntries(
    pieces.map((piece) => [
      `${begin}${JSON.stringify(piece)}`,
      (octets: number) => ({
        raw: Buffer.from(raw),
        records: { [name]: `${begin}${filled(piece, octets)}` },
      }),
    ]),
  );
}

const PLAIN = `${FROM}\r\nx`;
const SIGNED = `${signature("relaxed")}${PLAIN}`;
const answers: Shapes = {
  ...records(
    "bank.example",
    "v=spf1 ",
    [
      "ip4:192.0.2.7 ",
      "include:a ",
      "exists:%{ir}.a ",
      "a ",
      " ",
      "%{",
      "a:%{l9r-+,/=}",
      "?",
      "x=",
      "mx/24//64 ",
    ],
    PLAIN,
  ),
  ...records(
    "_dmarc.bank.example",
    "v=DMARC1; p=reject; ",
    ["; ", "a=b;", "rua=mailto:a,", "=", " ", "pct=1", ","],
    PLAIN,
  ),
  ...records(
    "s._domainkey.bank.example",
    "v=DKIM1; ",
    ["p=", "a;", "; ", "k=rsa; ", " ", "p=AAAA", "h=a:", "="],
    SIGNED,
  ),
};

/** All of them. */
export const CHECK_CASES: readonly WorstCase[] = [
  ...casesOf("checks of a body", MAX_MAIL_OCTETS, read, bodyShapes),
  ...casesOf("checks of a header", 2 * MAX_HEADER_OCTETS, read, headerShapes),
  ...casesOf("records of checks", MAX_RECORD_OCTETS, read, answers),
];
