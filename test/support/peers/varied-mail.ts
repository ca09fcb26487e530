import type { Mailbox } from "../../../src/core/addresses.ts";
import type { OutgoingAttachment, OutgoingMail } from "../../../src/mail/composing/compose.ts";

/** A number in [0, 1); the same sequence for the same seed. */
export type Random = () => number;

/** A small generator of evenly spread numbers (xorshift, 32 bits), so that a failing message can be made again. */
export function seeded(seed: number): Random {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 0x1_0000_0000;
  };
}

const WORDS = [
  "hello",
  "invoice",
  "order",
  "A",
  "of",
  "RE:",
  "=?utf-8?Q?no?=",
  "a=b",
  "100%",
  "x".repeat(90),
  "-- ",
  "From",
  "Grüße",
  "naïve",
  "Łódź",
  "мир",
  "你好世界",
  "こんにちは",
  "🎉",
  "e\u0301",
  "\u00a0",
  "\u200f",
  "שלום",
  "ﷺ",
];
const SPACES = [" ", " ", " ", "  ", "\t", " \t ", "    "];
const LINE_ENDS = ["\n", "\n", "\n", "\r\n", "\n\n", "\n\n\n", " \n", "\t\n", " \t \r\n"];
const LINES = [".", "..", ".hidden", "From here", "-- ", "", " ", "\t", "=", "=3D", "--boundary", "a\u2028b"];
const NAMES = [
  "Ann",
  "Jürgen Müller",
  'Quo"te',
  "O'Hara, Pat (Sales)",
  "李雷",
  "",
  "a\\b",
  "Ünïcode ".repeat(12),
  "🎉",
];
const LOCALS = ["ann", "b.c+tag", "o'hara", "x".repeat(64), "UPPER"];

interface Source {
  random: Random;
  below(limit: number): number;
  chance(probability: number): boolean;
  one<Item>(items: readonly Item[]): Item;
  many<Item>(most: number, make: (at: number) => Item): Item[];
}

function source(random: Random): Source {
  const below = (limit: number): number => Math.floor(random() * limit);
  return {
    random,
    below,
    chance: (probability) => random() < probability,
    one: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error("nothing to choose from");
      return item;
    },
    many: (most, make) => Array.from({ length: below(most + 1) }, (_, at) => make(at)),
  };
}

function words({ one, below }: Source, most: number): string {
  return Array.from({ length: below(most + 1) }, () => one(WORDS) + one(SPACES)).join("");
}

function mailbox(from: Source): Mailbox {
  const { one, chance } = from;
  const email = chance(0.02) ? "jürgen@größe.example" : `${one(LOCALS)}@recipient.example`;
  return chance(0.3) ? { email } : { email, name: one(NAMES) };
}

function isAscii(text: string): boolean {
  return /^[\x00-\x7f]*$/.test(text);
}

/** Text with the blanks, dots and line lengths that matter to canonicalization and encodings. */
function body(from: Source): string {
  const { one, below, chance } = from;
  // If text is ASCII without lines over 998 octets, it is sent unencoded. All other text is encoded.
  const plain = chance(0.4);
  const lengths = plain ? [996, 997, 998] : [996, 998, 999, 1000, 3000];
  const line = (): string => {
    if (chance(0.2)) return one(LINES.filter((text) => !plain || isAscii(text)));
    if (chance(0.05)) return one(plain ? ["y", ".", " "] : ["y", "é", ".", " "]).repeat(one(lengths));
    return plain ? words(from, 14).replace(/[^\x00-\x7f]/g, "") : words(from, 14);
  };
  const lines = Array.from({ length: below(30) }, () => line() + one(LINE_ENDS)).join("");
  return lines + (chance(0.3) ? one(["\n\n\n\n", " ", "\r\n \r\n", "no end of line", "\t\n"]) : "");
}

function html(from: Source): string {
  return `<html><body><p>${body(from).replaceAll("<", "&lt;")}</p><a href="https://example.com/?a=1&amp;b=ü">x</a></body>`;
}

function attachment(from: Source, at: number): OutgoingAttachment {
  const { one, below, chance } = from;
  const inline = chance(0.3);
  return {
    filename: one(["a.txt", "Übersicht.pdf", "表 (1).xlsx", 'q"uote.bin', "n".repeat(200), " spaced "]),
    contentType: one(["application/pdf", "text/plain", "image/png", "application/octet-stream"]),
    bytes: Uint8Array.from({ length: below(3000) }, () => below(256)),
    disposition: inline ? "inline" : "attachment",
    contentId: inline ? `image${at}@sender.example` : null,
  };
}

function customHeaders(from: Source): Record<string, string> {
  const { one, many, chance } = from;
  const fields = many(25, (at): [string, string] => [`X-Field-${at}`, words(from, 40)]);
  if (chance(0.2)) fields.push(["X-Empty", ""]);
  if (chance(0.2)) fields.push(["Precedence", "bulk"], ["x-lower", one(["a", "  b  ", "\tc"])]);
  if (chance(0.2)) fields.push(["Comments", "word ".repeat(300)]);
  return Object.fromEntries(fields);
}

function ownHeaders({ chance, below }: Source): [string, string][] {
  const id = (): string => `<${below(1e9).toString(36)}.${"r".repeat(below(60))}@elsewhere.example>`;
  const fields: [string, string][] = [];
  if (chance(0.4))
    fields.push(
      ["List-Unsubscribe", `<https://example.com/u/${"t".repeat(below(400))}>`],
      ["List-Unsubscribe-Post", "List-Unsubscribe=One-Click"],
    );
  if (chance(0.3))
    fields.push(["In-Reply-To", id()], ["References", Array.from({ length: 1 + below(20) }, id).join(" ")]);
  return fields;
}

/** Makes an unusual message from the sender's domain. */
export function variedMail(random: Random, domain: string): OutgoingMail {
  const from = source(random);
  const { one, many, chance, below } = from;
  const hasHtml = chance(0.6);
  return {
    from: { email: `news@${domain}`, ...(chance(0.7) ? { name: one(NAMES) } : {}) },
    to: many(5, () => mailbox(from)),
    cc: chance(0.3) ? many(3, () => mailbox(from)) : [],
    replyTo: chance(0.3) ? many(2, () => mailbox(from)) : [],
    subject: chance(0.05) ? "" : words(from, 25),
    text: hasHtml && chance(0.4) ? null : body(from),
    html: hasHtml ? html(from) : null,
    headers: customHeaders(from),
    extraHeaders: ownHeaders(from),
    attachments: chance(0.3) ? many(3, (at) => attachment(from, at)) : [],
    messageId: `<${below(2 ** 31).toString(36)}${"m".repeat(below(80))}@${domain}>`,
    date: 1_600_000_000_000 + below(2 ** 31) * 60,
  };
}
