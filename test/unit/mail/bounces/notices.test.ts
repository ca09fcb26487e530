import { describe, expect, test } from "bun:test";
import { readFeedback } from "../../../../src/mail/bounces/arf.ts";
import { readBounce } from "../../../../src/mail/bounces/dsn.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";

async function read(lines: readonly string[]) {
  const raw = Buffer.from(lines.join("\r\n"), "utf8");
  const mail = await parseMail(raw);
  return { bounce: readBounce(mail, raw), feedback: readFeedback(mail) };
}

const DAEMON = "From: Mail Delivery System <MAILER-DAEMON@mx.example.net>";
const ROBOT = "From: no-reply@mx.example.net";

describe("a notice without fields, in the form of", () => {
  test.each<[string, string[], object]>([
    [
      "IMail",
      [
        DAEMON,
        "Subject: Undeliverable Mail",
        "",
        "Unknown user: bob@example.org",
        "",
        "Original message follows.",
        "",
      ],
      { recipient: "bob@example.org", outcome: "hard" },
    ],
    [
      "MailMarshal",
      [
        "From: postmaster@mx.example.net",
        'Subject: Undeliverable Mail: "hi"',
        "",
        "Your message:",
        "   From:    ann@example.com",
        "   Subject: hi",
        "Could not be delivered because of",
        "",
        "550 5.1.1 Requested action not taken: mailbox unavailable",
        "",
        "The following recipients were affected:",
        "   bob@example.org",
      ],
      { outcome: "hard" },
    ],
    [
      "Lotus Notes",
      [
        DAEMON,
        "Subject: DELIVERY FAILURE: User bob (bob@example.org) not listed in Domino Directory",
        "",
        "------- Failure Reasons --------",
        "",
        "User bob (bob@example.org) not listed in Domino Directory",
        "bob@example.org",
        "",
        "------- Returned Message --------",
      ],
      { recipient: "bob@example.org", outcome: "hard" },
    ],
    [
      "Yahoo",
      [
        "From: MAILER-DAEMON@yahoo.com",
        "Subject: Failure Notice",
        "",
        "Sorry, we were unable to deliver your message to the following address.",
        "",
        "<bob@example.org>:",
        "Remote host said: 552 5.2.2 mailbox full [RCPT_TO]",
        "",
        "--- Below this line is a copy of the message.",
      ],
      { recipient: "bob@example.org", outcome: "soft", category: "mailbox-full" },
    ],
    [
      "qmail, whose words are about the sender and whose peer's are not",
      [
        DAEMON,
        "Subject: failure notice",
        "",
        "<bob@example.org>:",
        "Connected to 192.0.2.1 but sender was rejected.",
        "Remote host said: 421 4.7.0 [TSS04] Messages from 192.0.2.9 temporarily deferred due to user complaints",
        "I'm not going to try again; this message has been in the queue too long.",
      ],
      { recipient: "bob@example.org", outcome: "failed", category: "reputation", smtpCode: 421 },
    ],
    [
      "a gateway of text messages, under the mail's own subject",
      [
        "From: post_master@sms.example.net",
        "Subject: Re: hi",
        "",
        "Error: Invalid user address",
        "550 - Requested action not taken: no such user here",
        "",
        "RCPT TO: bob@example.org",
      ],
      { recipient: "bob@example.org", outcome: "hard" },
    ],
    [
      "Google Groups, in a language we do not read",
      [
        DAEMON,
        "X-Failed-Recipients: team@example.org",
        "Auto-Submitted: auto-replied",
        "Subject: Delivery Status Notification (Failure)",
        "",
        "Вітаємо! Група, з якою Ви намагалися зв'язатися, не існує.",
        "https://groups.google.com/support/",
      ],
      { recipient: "team@example.org", outcome: "failed", category: "policy" },
    ],
    [
      "a part of text whose type lacks a semicolon",
      [
        DAEMON,
        "Subject: Returned Mail: User unknown",
        "Content-Type: multipart/mixed; boundary=b",
        "",
        "--b",
        "Content-Type: text/plain charset=us-ascii",
        "",
        "bob@example.org [User unknown]",
        "--b--",
      ],
      { recipient: "bob@example.org", outcome: "hard" },
    ],
  ])("%s", async (_, lines, expected) => {
    expect((await read(lines)).bounce?.recipients).toMatchObject([expected]);
  });
});

describe("a notice in another language", () => {
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
    for (const from of [DAEMON, ROBOT])
      expect((await read([from, ...lines])).bounce?.recipients).toMatchObject([
        { recipient: "bob@example.org", outcome },
      ]);
  });
});

describe("not a notice", () => {
  test.each<[string, string[]]>([
    ...[
      "Automatic reply: Delivery problem with your order",
      "Out of Office: Mail delivery failed",
      "Automatische Antwort: Unzustellbar",
      "Abwesenheitsnotiz: Undelivered Mail",
      "Réponse automatique : Échec de la remise",
      "Respuesta automática: No se puede entregar",
      "Risposta automatica: Mancato recapito",
      "Resposta automática: falha na entrega",
      "Автоответ: не доставлено",
      "自動返信: 配信エラー",
      "自动回复: 退信",
      "Re: Auto-reply: delivery failure",
    ].map((subject): [string, string[]] => [
      subject,
      [
        "From: bob@example.org",
        `Subject: ${subject}`,
        "",
        "I cannot be reached; user unknown, mailbox full.",
      ],
    ]),
    [
      "a marked reply that quotes our own subject",
      [
        "From: bob@example.org",
        "Auto-Submitted: auto-replied",
        "Subject: Delivery failed: your parcel",
        "",
        "I cannot be reached.",
      ],
    ],
    [
      "a marked reply of Exchange",
      [
        "From: bob@example.org",
        "X-Autoreply: yes",
        "Subject: Mail delivery failed",
        "",
        "This was not delivered to a person.",
      ],
    ],
    [
      "a reply marked by its precedence",
      [
        "From: bob@example.org",
        "Precedence: auto_reply",
        "Subject: Mail delivery failed",
        "",
        "could not be delivered",
      ],
    ],
    [
      "a vacation notice of a mail system",
      [
        "From: postmaster@example.org",
        "Auto-Submitted: auto-replied",
        "Subject: I am away",
        "",
        "Your mail was not delivered to me.",
      ],
    ],
    [
      "a vacation notice with a null path and no marks",
      [
        "Return-Path: <>",
        "From: bob@example.org",
        "Subject: your mail",
        "",
        "I cannot be reached until May.",
      ],
    ],
    [
      "a challenge",
      [
        "From: bob@example.org",
        "Subject: Please confirm your message to bob@example.org",
        "",
        "Your message has not been delivered yet. Click to prove that you are a person.",
      ],
    ],
    [
      "a wish to unsubscribe",
      ["From: bob@example.org", "Subject: unsubscribe", "", "Remove me, or it will be reported as spam"],
    ],
    [
      "a robot's greeting",
      [
        ROBOT,
        "Subject: We have got your mail",
        "",
        "This mailbox is not read; your message was not delivered to a person.",
      ],
    ],
    [
      "a person's question about a bounce, with the returned message",
      [
        "From: ann@shop.test",
        "Subject: What does this mean?",
        "Content-Type: multipart/mixed; boundary=b",
        "",
        "--b",
        "",
        "I got this: your message could not be delivered to the following recipient, 550 5.1.1 user unknown",
        "--b",
        "Content-Type: message/rfc822",
        "",
        "From: ann@shop.test",
        "To: bob@example.org",
        "Subject: Hello",
        "",
        "Hi",
        "--b--",
      ],
    ],
    [
      "a newsletter about deliverability",
      [
        "From: news@example.org",
        "Subject: Ten ways out of bounces",
        "",
        "550 5.1.1 user unknown: what to do when mail could not be delivered",
      ],
    ],
  ])("%s", async (_, lines) => {
    expect(await read(lines)).toEqual({ bounce: null, feedback: null });
  });
});
