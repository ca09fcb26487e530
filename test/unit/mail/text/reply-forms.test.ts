import { describe, expect, test } from "bun:test";
import { newPart, newPreview } from "../../../../src/mail/text/reply-text.ts";

/** The author's own lines, which stay whatever stands below them. */
const OWN = [
  "Hello Ben,\nplease cancel order 48213.",
  "I want 3 of them",
  "1. yes\n2. no\n3. the 14th",
  "Write to billing@example.com instead",
  "Bitte bis 14:30 liefern",
  "Le colis est arrivé le 14/11/2023",
  "We met on 14 Nov 2023 at 10:15.",
  "Tel. +49 30 1234567",
  "On order 48213 I have a question.",
  "Ann <ann@example.com> knows more.",
  "see https://example.com/1\n\n42",
  "注文番号は48213です",
  "Заказ 48213, адрес ana@example.com",
] as const;

/** Introductions by program and language, each with whether only quoted lines follow it. */
const INTRODUCTIONS: readonly (readonly [string, string])[] = [
  ["Gmail", "On Tue, Nov 14, 2023 at 10:13 PM Ben Example <ben@example.org> wrote:"],
  ["Gmail, broken", "On Tue, Nov 14, 2023 at 10:13 PM Ben Example of Sales\n<ben@example.org> wrote:"],
  ["Gmail, broken early", "On Tue, Nov 14, 2023 at 10:13 PM Ben Example\n<ben@example.org> wrote:"],
  [
    "Gmail, broken within the address",
    'On Tue, Nov 14, 2023 at 10:13 PM "Ben Example" <ben-with-a-long-name@list.example.org\n> wrote:',
  ],
  ["Yahoo", "On Tuesday, November 14, 2023 at 10:13:11 PM GMT+1, Ben Example <ben@example.org> wrote:"],
  ["Apple Mail", "On 14 Nov 2023, at 22:13, Ben <ben@example.org> wrote:"],
  ["Thunderbird", "On 11/14/23 22:13, Ben Example wrote:"],
  ["Thunderbird in German", "Am 14.11.23 um 22:13 schrieb Ben Example:"],
  ["Gmail in German", "Am Di., 14. Nov. 2023 um 22:13 Uhr schrieb Ben Example <\nben@example.org>:"],
  ["Gmail in French", "Le mar. 14 nov. 2023 à 22:13, Ben Example <ben@example.org> a\nécrit :"],
  ["Gmail in Spanish", "El mar, 14 nov 2023 a las 22:13, Ben Example (<ben@example.org>)\nescribió:"],
  [
    "Gmail in Italian",
    "Il giorno mar 14 nov 2023 alle ore 22:13 Ben Example <\nben@example.org> ha scritto:",
  ],
  ["Gmail in Portuguese", "Em ter., 14 de nov. de 2023 às 22:13, Ben <ben@example.org>\nescreveu:"],
  ["Gmail in Dutch", "Op di 14 nov 2023 om 22:13 schreef Ben Example <ben@example.org>:"],
  ["Gmail in Danish", "Den tir. 14. nov. 2023 kl. 22.13 skrev Ben Example <ben@example.org>:"],
  ["Gmail in Norwegian", "tir. 14. nov. 2023 kl. 22:13 skrev Ben Example <ben@example.org>:"],
  [
    "Gmail in Norwegian, broken",
    "tir. 14. nov. 2023 kl. 22:13 skrev Ben Example fra salg\n<ben@example.org>:",
  ],
  ["Gmail in Polish", "wt., 14 lis 2023 o 22:13 Ben Example <ben@example.org> napisał(a):"],
  [
    "Gmail in Polish, broken",
    "wt., 14 lis 2023 o 22:13 Ben Example z działu sprzedaży\n<ben@example.org> napisał(a):",
  ],
  ["Gmail in Russian", "вт, 14 нояб. 2023 г. в 22:13, Ben Example <ben@example.org>:"],
  ["Gmail in Japanese", "2023年11月14日(火) 22:13 Ben Example <ben@example.org>:"],
];

describe("lines of the author's own above an introduction stay", () => {
  for (const [program, introduction] of INTRODUCTIONS)
    test.each(OWN.map((own) => [own]))(`${program}: %j`, (own) => {
      const text = `${own}\n${introduction}\n> How many?\n> Ben\n`;
      expect(newPart({ text, html: null })).toBe(own);
      expect(newPart({ text: `${own}\n\n${introduction}\n\n> How many?\n`, html: null })).toBe(own);
      expect(newPreview({ text, html: null })).toBe(own.replace(/\s+/g, " "));
    });

  const escaped = (text: string): string =>
    text.replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\n", " ");
  for (const [program, introduction] of INTRODUCTIONS.filter(([name]) => !name.includes("within")))
    test.each(OWN.map((own) => [own]))(`${program}, only html: %j`, (own) => {
      const above = own.split("\n").map(escaped).join("<br>");
      for (const html of [
        `<div>${above}</div><div class="q"><div>${escaped(introduction)}<br></div><blockquote>How many?</blockquote></div>`,
        `<p>${above}<br>${escaped(introduction)}</p><blockquote type="cite">How many?</blockquote>`,
      ])
        expect(newPart({ text: null, html })).toBe(own);
    });
});

test.each([
  ["See my answers to order 48213:"],
  ["You asked on 12/3:"],
  ["This is what the 2 of you said:"],
  ["Here are the 3 points of 2023:"],
  ["Zu Punkt 4.2:"],
])("a line above quoted lines that is no introduction stays: %j", (line) => {
  expect(newPart({ text: `Hi,\n${line}\n\n> How many?\n`, html: null })).toBe(`Hi,\n${line}`);
});

describe("other lines of the author's own stay, too", () => {
  test.each([
    [
      "a line below a telephone's",
      "Fine.\n\nSent from my iPhone\n\nPS: order 5, too",
      "Fine.\n\n\nPS: order 5, too",
    ],
    ["a divider", "Fine.\n\n______\nPS: order 5, too", "Fine.\n\n______\nPS: order 5, too"],
    [
      "a divider of hyphens",
      `Fine.\n--\n${"own line\n".repeat(20)}`,
      `Fine.\n--\n${"own line\n".repeat(20)}`.trim(),
    ],
  ])("other lines of the author's own stay: %s", (_name, text, want) => {
    expect(newPart({ text, html: null })?.trim()).toBe(want);
  });
});

const BLOCK = (...words: string[]): string => {
  const values = ["Ben Example <ben@example.org>", "14.11.2023 22:13", "ana@example.com", "Hej"];
  return words.map((word, at) => `${word}: ${values[at]}`).join("\n");
};

test.each<[string, string]>([
  ["Zoho", "---- On Tue, 14 Nov 2023 22:13:11 +0100 Ben Example <ben@example.org> wrote ----"],
  ["Zoho, newer", " ---- On Tue, 14 Nov 2023 22:13:11 +0100 Ben Example <ben@example.org> wrote --- "],
  [
    "Zoho, broken",
    "---- On Tue, 14 Nov 2023 22:13:11 +0100 Ben Example of Sales\n<ben@example.org> wrote ----",
  ],
  ["Zoho without a name", "---- On Tue, 14 Nov 2023 22:13:11 +0100 <ben@example.org> wrote ----"],
  ["Zoho in French", "---- Le mar., 14 nov. 2023 22:13:11 +0100 Ben <ben@example.org> a écrit ----"],
  ["Zoho in German", "---- Am Di, 14 Nov. 2023 22:13:11 +0100 Ben <ben@example.org> schrieb ----"],
  [
    "Zoho, passed on",
    `============ Forwarded message ============\n${BLOCK("From", "Date", "To", "Subject")}`,
  ],
  [
    "Lotus Notes",
    `-----Ben Example <ben@example.org> wrote: -----\n${BLOCK("To", "Date", "From", "Subject")}`,
  ],
  ["Lotus Notes in German", `-----Ben Example schrieb: -----\n${BLOCK("An", "Datum", "Von", "Betreff")}`],
  [
    "HCL Notes",
    `Ben Example ---14.11.2023 22:13:11---Hello Ana, how many\n\n${BLOCK("From", "Date", "To", "Subject")}`,
  ],
  [
    "HCL Notes in English",
    `"Ben" ---11/14/2023 10:13:11 PM---Hello\n\n${BLOCK("From", "Date", "To", "Subject")}`,
  ],
  [
    "Notes with tabs",
    "Von:\tBen Example <ben@example.org>\nAn:\tana@example.com\nDatum:\t14.11.2023 22:13\nBetreff:\tHej",
  ],
  [
    "Orange",
    'Message du : 14/11/2023 22:13\nDe : "Ben" <ben@example.org>\nA : ana@example.com\nCopie à :\nSujet : Hej',
  ],
  [
    "Orange without a colon",
    'Message du 14/11/23 22:13\nDe : "Ben" <ben@example.org>\nA : ana@example.com\nCopie à :\nObjet : Hej',
  ],
  ["SFR", 'De : "Ben" <ben@example.org>\nA : ana@example.com\nEnvoyé: mardi 14 novembre 2023\nObjet : Hej'],
  [
    "Yahoo in French",
    "      De : Ben <ben@example.org>\n À : ana@example.com\n Envoyé le : Mardi 14 novembre 2023 22h13\n Objet : Hej",
  ],
  [
    "Yahoo",
    "     From: Ben <ben@example.org>\n To: ana@example.com\n Sent: Tuesday, 14 November 2023, 22:13\n Subject: Hej",
  ],
  [
    "Yahoo in German",
    "     Von: Ben <ben@example.org>\n An: ana@example.com\n Gesendet: 22:13 Dienstag\n Betreff: Hej",
  ],
  [
    "Yahoo in Spanish",
    "     De: Ben <ben@example.org>\n Para: ana@example.com\n Enviado: Martes 14\n Asunto: Hej",
  ],
  [
    "Yahoo in Italian",
    "     Da: Ben <ben@example.org>\n A: ana@example.com\n Inviato: Martedì 14\n Oggetto: Hej",
  ],
  [
    "Gmail in German, broken in the address",
    'Am 14.11.2023 22:13 schrieb "Ben" <ben-with-a-long-name@list.example.org\n>:',
  ],
  [
    "Gmail in French, broken in the address",
    "Le mar. 14 nov. 2023 à 22:13, Ben <ben-with-a-long-name@list.example.org\n> a écrit :",
  ],
  [
    "Gmail in Dutch, broken in the address",
    "Op di 14 nov 2023 om 22:13 schreef Ben <ben-long@list.example.org\n>:",
  ],
  [
    "Gmail in Czech, broken in the address",
    "út 14. 11. 2023 v 22:13 odesílatel Ben <ben-with-a-name@list.example.org\n> napsal:",
  ],
  [
    "Gmail in Japanese, broken in the address",
    "2023年11月14日(火) 22:13 Ben <ben-with-a-long-name@list.example.org\n>:",
  ],
  ["Danish Outlook", `-----Oprindelig meddelelse-----\n${BLOCK("Fra", "Sendt", "Til", "Emne")}`],
  ["Danish Outlook without a line", BLOCK("Fra", "Sendt", "Til", "Emne")],
  ["Danish Outlook with a name", "Fra: Ben\nSendt: 14. november 2023 10:00\nTil: Ana\nEmne: Hej"],
  ["Danish, with Dato", "Fra: Ben\nDato: tirsdag den 14. november 2023 kl. 22.13\nTil: Ana\nEmne: Hej"],
  ["Swedish Outlook", `-----Ursprungligt meddelande-----\n${BLOCK("Från", "Skickat", "Till", "Ämne")}`],
  ["Swedish Outlook without a line", "Från: Ben\nSkickat: den 14 november 2023 22:13\nTill: Ana\nÄmne: Hej"],
  ["Norwegian Outlook", `-----Opprinnelig melding-----\n${BLOCK("Fra", "Sendt", "Til", "Emne")}`],
  [
    "Finnish Outlook",
    `-----Alkuperäinen viesti-----\n${BLOCK("Lähettäjä", "Lähetetty", "Vastaanottaja", "Aihe")}`,
  ],
  ["Finnish, with Päivämäärä", BLOCK("Lähettäjä", "Päivämäärä", "Vastaanottaja", "Aihe")],
  ["Polish Outlook", `-----Oryginalna wiadomość-----\n${BLOCK("Od", "Wysłano", "Do", "Temat")}`],
  [
    "Polish Outlook without a line",
    "Od: Ben\nWysłano: wtorek, 14 listopada 2023 22:13\nDo: Ana\nDW: Cid\nTemat: Hej",
  ],
  ["Open-Xchange in German", "Ben Example <ben@example.org> hat am 14.11.2023 22:13 CET geschrieben:\n\n"],
  ["Open-Xchange in French", "Ben Example <ben@example.org> a écrit le 14/11/2023 22:13 CET :\n\n"],
  ["Open-Xchange in Dutch", "Ben Example <ben@example.org> schreef op 14-11-2023 22:13 CET:\n\n"],
  ["AOL", "In a message dated 11/14/2023 10:13:11 PM Central European Time, ben@example.org writes:\n\n"],
  ["AOL in German", "In einer eMail vom 14.11.2023 22:13:11 schreibt ben@example.org:\n\n"],
  [
    "Proton, older",
    "\u2010\u2010\u2010\u2010\u2010\u2010 Original Message \u2010\u2010\u2010\u2010\u2010\u2010\nOn Tuesday, Ben wrote:\n",
  ],
  [
    "eM Client in German",
    '------ Originalnachricht ------\nVon "Ben" <ben@example.org>\nAn ana@example.com\nDatum 14.11.2023\nBetreff Hej',
  ],
  ["a help desk", "##- Please type your reply above this line -##\n\nYour request was updated."],
  ["a help desk in German", "-- Bitte antworten Sie oberhalb dieser Zeile --\n\nIhre Anfrage"],
  ["a help desk in French", "=== Répondez au-dessus de cette ligne ===\n\nVotre demande"],
  ["a help desk in Spanish", "----- Responda por encima de esta línea -----\n\nSu solicitud"],
  ["a title in any language", `-----Upprunaleg skilaboð-----\n${BLOCK("Frá", "Sent", "Til", "Efni")}`],
])("the part that %s quotes goes", (_name, quoted) => {
  for (const own of ["Fint.", "Order 48213: yes", "Ring 10:30"])
    for (const text of [`${own}\n\n${quoted}\n\nSpm\n`, `${own}\n\n${quoted}\n\n> Spm\n`])
      expect(newPart({ text, html: null })).toBe(own);
});

test("an address directly above a quoted header stays", () => {
  const text = `Deliver to:\nTo: Ann Lee\n${BLOCK("From", "Sent", "To", "Subject")}\n\nq`;
  expect(newPart({ text, html: null })).toBe("Deliver to:\nTo: Ann Lee");
});

test.each([
  ["a title of the author's own", "Hi\n\n--- what I wrote ---\nmore"],
  ["a journey", "Please book:\n\nA: Berlin\nDo: Munich\nTill: Friday\n\nThanks"],
  ["a row of marks with words", "Hi\n\n----- part 2 -----\nmore"],
  ["a title of stars", "Hi\n\n*** Menu ***\nTo: all"],
  ["words about a line", "Please reply above this line\nand below that one."],
  ["a comparison of times", "Hi\n\n--- 10:15 or 11:15 ---\nWhich one?"],
])("no quote is found in %s", (_name, text) => {
  expect(newPart({ text, html: null })).toBe(text);
});
