import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type ParsedMail, parseMail } from "../../../../src/mail/reading/parse.ts";
import { newPart } from "../../../../src/mail/text/reply-text.ts";

/** Messages as people send them, each with the value that one field must have. */
const CORPUS = join(import.meta.dir, "../../../../../shared/corpora/field-mail");

interface Case {
  file: string;
  /** The field; a `~` at its end means that it contains the value. */
  check: string;
  want: string;
}

const cases = existsSync(CORPUS)
  ? (JSON.parse(readFileSync(join(CORPUS, "cases.json"), "utf8")) as Case[])
  : [];

const FIELDS: Readonly<Record<string, (mail: ParsedMail) => string | null>> = {
  subject: (mail) => mail.subject,
  text: (mail) => mail.text,
  html: (mail) => mail.html,
  preview: (mail) => mail.preview,
  replyText: (mail) => newPart(mail),
  attachment0: (mail) => Buffer.from(mail.attachments[0]?.bytes ?? []).toString("base64"),
  filename0: (mail) => mail.attachments[0]?.filename ?? null,
};

test.skipIf(cases.length > 0)("the corpus of field mail is not on this machine", () => {
  expect(cases).toEqual([]);
});

for (const { file, check, want } of cases)
  test(`${file} has the right ${check}`, async () => {
    const field = FIELDS[check.replace("~", "")];
    const found = field?.(await parseMail(readFileSync(join(CORPUS, file)))) ?? "";
    if (check.endsWith("~")) expect(found).toContain(want);
    else expect(found.trim()).toBe(want);
  });
