import { describe, expect, test } from "bun:test";
import { readFeedback } from "../../../../src/mail/bounces/arf.ts";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { noticeRecipients } from "../../../../src/mail/bounces/notice-text.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import { type Sample, samplesIn, toldOf } from "../../../support/report-mail.ts";

const NOTICES = [...samplesIn("notices.txt"), ...samplesIn("wrapped-notices.txt")];
const OTHERS = samplesIn("no-notices.txt");
const named = (samples: Sample[]) => samples.map((sample): [string, Sample] => [sample.name, sample]);

test("the tables have more than 130 notices in words and more than 120 other messages", () => {
  expect(NOTICES.length).toBeGreaterThan(130);
  expect(OTHERS.length).toBeGreaterThan(120);
  const row = /^(?:\S+ (?:hard|soft|failed|deferred) [\w-]+(?:, \w+ [^,;]+)*(?:; |$))+$/;
  expect(NOTICES.filter(({ expected }) => !row.test(expected))).toEqual([]);
});

test.each(named(NOTICES))("a notice in words is read: %s", async (_, { raw, expected }) => {
  const found = readBounce(await parseMail(raw), raw)?.recipients ?? [];
  expect(toldOf(found, expected)).toBe(expected);
});

test.each(named(OTHERS))("a message that is not a bounce is not read as one: %s", async (_, { raw }) => {
  const mail = await parseMail(raw);
  expect({ bounce: readBounce(mail, raw), feedback: readFeedback(mail) }).toEqual({
    bounce: null,
    feedback: null,
  });
});

describe("a notice in another language is read:", () => {
  test.each<[string, string, string, string]>([
    ["Unzustellbar: hi", "Ihre Nachricht konnte nicht zugestellt werden an", "Das Postfach ist voll", "soft"],
    ["Zustellung fehlgeschlagen", "konnte nicht zugestellt werden:", "Benutzer existiert nicht", "hard"],
    ["Non remis : hi", "Votre message n'a pas pu être remis à", "Le destinataire est inconnu", "hard"],
    ["Échec de la remise du message", "n'a pas pu être remis", "La boîte du destinataire est pleine", "soft"],
    ["No se puede entregar: hi", "No se pudo entregar su mensaje a", "El usuario no existe", "hard"],
    ["Não entregue: hi", "Não foi possível entregar a mensagem a", "Usuário inexistente", "hard"],
    ["Mancato recapito", "Impossibile recapitare il messaggio a", "utente sconosciuto", "hard"],
    [
      "Недоставленное сообщение",
      "Ваше письмо не может быть доставлено:",
      "Пользователь не существует",
      "hard",
    ],
    ["配信不能", "次の宛先に送信できませんでした", "宛先が見つかりません", "hard"],
    ["系统退信", "您的邮件无法投递到", "收件人不存在", "hard"],
    ["Niedostarczone: hi", "Nie można dostarczyć wiadomości do", "Nie ma takiego konta", "hard"],
  ])("%s", async (subject, words, reason, outcome) => {
    const lines = ["To: ann@example.com", `Subject: ${subject}`, "", words, "", "bob@example.org", reason];
    for (const from of ["MAILER-DAEMON@mx.example.net", "no-reply@mx.example.net"]) {
      const raw = Buffer.from([`From: ${from}`, ...lines].join("\r\n"), "utf8");
      expect(readBounce(await parseMail(raw), raw)?.recipients).toMatchObject([
        { recipient: "bob@example.org", outcome },
      ]);
    }
  });
});

test("an address is searched in the first 500 characters of a line, and the whole line is kept", () => {
  const recipient = "bob@example.org";
  const line = (length: number) => `${"-".repeat(length - recipient.length - 1)} ${recipient}`;
  const found = noticeRecipients(`${line(500)}（未知）`, new Set());
  expect(found).toMatchObject([{ address: recipient, reason: expect.stringContaining("（未知）") }]);
  expect(noticeRecipients(line(500 + recipient.length), new Set())).toEqual([]);
});
