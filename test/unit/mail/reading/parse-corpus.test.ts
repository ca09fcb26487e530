import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import { storedText } from "../../../../src/mail/text/stored-text.ts";

/** 53 messages with the findings of another reader (Stalwart's). Skipped if the folder is absent. */
const FOLDER = join(import.meta.dir, "../../../../../shared/corpora/stalwart-mail-parser/resources/eml");
const absent = !existsSync(FOLDER);

// biome-ignore lint/suspicious/noExplicitAny: the corpus is JSON of any shape.
type Json = any;

/** Messages that we read differently, with the reason. A broken message has no single right reading. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  "malformed/001.eml text": "a multipart within itself under the same boundary: its delimiter is text to us",
  "malformed/009.eml text": "an outer delimiter within an unclosed inner multipart ends it (RFC 2046 §5.1.2)",
  "malformed/011.eml text": "the same, with a longer inner boundary",
  "malformed/012.eml attachments": "the same: so there are three messages in it",
  "malformed/016.eml text": "boundaries of more than 70 characters (RFC 2046 §5.1.1)",
  "malformed/019.eml text": "only html could be read: its text is given",
  "malformed/020.eml text": "two Content-Type fields in one part: the html is found, the text is not",
  "malformed/021.eml text": "the same",
  "rfc/000.eml text": "text/enriched is shown without its commands",
  "rfc/000.eml attachments": "the same: it is text, no file",
  "thirdparty/002.eml text": "broken base64: what can be decoded is given",
  "thirdparty/005.eml text": "a delimiter in the middle of a line is none; broken UTF-16 is shown as U+FFFD",
  "thirdparty/015.eml attachments": "messages within it: each is an attachment",
};

const FIELDS = ["from", "to", "subject", "text", "attachments"] as const;

function addresses(headers: Json[], name: string): string[] {
  return headers
    .filter((header: Json) => header.name === name)
    .flatMap(
      ({ value }: Json) =>
        value.Address?.List ?? (value.Address?.Group ?? []).flatMap((g: Json) => g.addresses),
    )
    .flatMap(({ address }: Json) => (address === null ? [] : [address.toLowerCase()]));
}

function words(text: string): string {
  return storedText(text).replace(/\s+/g, " ").trim();
}

/** Readings of the corpus. Of further text parts in a body, some readers make text and others attachments. */
function expectedReadings({ parts, text_body: texts, attachments }: Json): Record<string, unknown[]> {
  const { headers } = parts[0];
  const isText = (at: number) => "Text" in parts[at].body;
  const isNamed = (at: number) => /"filename"|"attachment"/i.test(JSON.stringify(parts[at].headers));
  const textOf = (all: number[]) =>
    words(
      all
        .filter(isText)
        .map((at) => parts[at].body.Text)
        .join("\n"),
    );
  const inline = [...new Set<number>([...texts, ...attachments])]
    .sort((a, b) => a - b)
    .filter((at) => !isNamed(at));
  const files = attachments.filter(
    (at: number) => isNamed(at) || !/Text|Html/.test(Object.keys(parts[at].body)[0] ?? ""),
  );
  const subject = headers.findLast(({ name }: Json) => name === "subject")?.value.Text ?? "";
  return {
    from: [addresses(headers, "from")[0] ?? null],
    to: [addresses(headers, "to").join()],
    subject: [words(subject)],
    text: [textOf(texts), textOf(inline)],
    attachments: [attachments.length, files.length],
  };
}

describe.skipIf(absent)("another reader's corpus", () => {
  const files = absent
    ? []
    : readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".eml"));

  test("agrees on sender, recipients, subject, text and attachments in 95 % at least, except for the messages listed here", async () => {
    const differing: string[] = [];
    for (const file of files.sort()) {
      const mail = await parseMail(readFileSync(join(FOLDER, file)));
      const expected = expectedReadings(
        JSON.parse(readFileSync(join(FOLDER, file.replace(/eml$/, "json")), "utf8")),
      );
      const found = {
        from: mail.from?.email.toLowerCase() ?? null,
        to: mail.to.map(({ email }) => email.toLowerCase()).join(),
        subject: words(mail.subject),
        text: words(mail.text ?? ""),
        attachments: mail.attachments.length,
      };
      for (const field of FIELDS)
        if (!expected[field]?.includes(found[field])) differing.push(`${file} ${field}`);
    }
    expect(files.length).toBe(53);
    expect(differing).toEqual(Object.keys(DIFFERENCES));
    expect(differing.length / (files.length * FIELDS.length)).toBeLessThanOrEqual(0.05);
  });
});
