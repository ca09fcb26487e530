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

describe("a closing sentence that begins like a footer stays", () => {
  test.each([
    ["Sent via UPS yesterday, tracking 1Z00000000000001."],
    ["Sent from our warehouse in Leeds this morning."],
    ["Sent with tracking number 12345."],
    ["Sent from my iPhone shop, call me there."],
    ["Sent using the wrong label"],
    ["Get Outlook working again, please."],
    ["Enviado de vuelta el lunes con Correos."],
    ["Enviado desde Madrid ayer"],
    ["Enviado por correio registado"],
    ["Envoyé de Paris hier par Chronopost."],
    ["Envoyé depuis notre entrepôt"],
    ["Gesendet mit DHL am Montag."],
    ["Gesendet von unserem Lager"],
    ["Von meinem Kollegen gesendet"],
    ["Inviato da Milano ieri con BRT"],
    ["Verzonden vanaf ons magazijn"],
    ["Skickat från Malmö i går"],
    ["Sendt fra lageret i dag"],
    ["Wysłane z Krakowa wczoraj"],
    ["Отправлено с курьером вчера"],
    ["Odesláno z Brna včera"],
    ["发自上海的仓库"],
    ["Lähetetty eilen postissa"],
  ])("%s", (line) => {
    for (const text of [`Hi Ben,\n\n${line}`, `Hi Ben,\n${line}`, `Hi Ben,\n\n${line}\n\nThanks\nAnn`])
      expect(newPart({ text, html: null })).toBe(text);
  });

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
  ])("other lines of the author's own stay, too: %s", (_name, text, want) => {
    expect(newPart({ text, html: null })?.trim()).toBe(want);
  });
});

test.each([
  ["Sent from my iPhone"],
  ["Sent from my Samsung Galaxy smartphone."],
  ["Sent from my mobile device"],
  ["Sent from Mail<https://go.microsoft.com/fwlink/?LinkId=550986> for Windows 10"],
  ["Sent from Yahoo Mail on Android"],
  ["Sent from Yahoo Mail for iPhone"],
  ["Yahoo Mail: Search, Organize, Conquer"],
  ["Gesendet von Yahoo Mail auf Android"],
  ["Envoyé depuis Yahoo Mail pour Android"],
  ["Enviado do Yahoo Mail no Android"],
  ["Inviato da Yahoo Mail su Android"],
  ["Sent from my Android device with K-9 Mail. Please excuse my brevity."],
  ["Diese Nachricht wurde von meinem Android-Gerät mit K-9 Mail gesendet."],
  ["Envoyé de mon appareil Android avec Courriel K-9 Mail. Veuillez excuser ma brièveté."],
  ["Enviado desde mi dispositivo Android con K-9 Mail. Por favor, disculpa mi brevedad."],
  ["Inviato dal mio dispositivo Android con K-9 Mail. Perdonate la brevità."],
  ["Skickat från min Android-enhet med K-9 Mail. Ursäkta min fåordighet."],
  ["Wysłane z urządzenia Android za pomocą K-9 Mail. Proszę wybaczyć moją zwięzłość."],
  ["Простите за краткость, создано в K-9 Mail."],
  ["Gesendet mit der GMX Mail App"],
  ["Gesendet mit der GMX iPhone App"],
  ["Sent with the GMX Mail app"],
  ["-- Diese Nachricht wurde von meinem Android Mobiltelefon mit GMX Mail gesendet."],
  ["Diese Nachricht wurde von meinem Android Mobiltelefon mit WEB.DE Mail gesendet."],
  ["Gesendet mit der WEB.DE Mail App"],
  ["Hent Outlook til iOS<https://aka.ms/o0ukef>"],
  ["Hent Outlook til Android"],
  ["Hämta Outlook för iOS<https://aka.ms/o0ukef>"],
  ["Hämta Outlook för Android"],
  ["Last ned Outlook for iOS<https://aka.ms/o0ukef>"],
  ["Skaffa Outlook för Android<https://aka.ms/AAb9ysg>"],
  ["Hanki Outlook for iOS<https://aka.ms/o0ukef>"],
  ["Pobierz aplikację Outlook dla systemu iOS<https://aka.ms/o0ukef>"],
  ["Pobierz aplikację Outlook dla systemu Android"],
  ["Get [Outlook for Android](https://aka.ms/ghei36)"],
  ["Get Outlook for iOS"],
  ["Télécharger Outlook pour iOS"],
  ["Obtener Outlook para Android"],
  ["Outlook für Android herunterladen"],
  ["Stáhnout Outlook pro iOS<https://aka.ms/o0ukef>"],
  ["Sendt fra min iPhone"],
  ["Skickat från min iPhone"],
  ["Sendt fra Outlook til Android<https://aka.ms/AAb9ysg>"],
  ["Wysłane z iPhone'a"],
  ["发自我的iPhone"],
  ["Gesendet mit der Telekom Mail App"],
  ["Sent with Proton Mail secure email."],
  ["Sent from Yahoo Mail. Get the app"],
  ["Inviato da Yahoo Mail. Scarica l'app"],
  ["Hae Outlook iOS:lle<https://aka.ms/o0ukef>"],
])("a footer goes: %s", (line) => {
  for (const text of [
    `Fine.\n\n${line}`,
    `Fine.\n\n${line}\n\nOn 14 Nov 2023, at 22:13, Ben <b@x.test> wrote:\n> q`,
  ])
    expect(newPart({ text, html: null })).toBe("Fine.");
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
  ["a comparison of times", "Hi\n\n--- 10:15 or 11:15 ---\nWhich one?"],
])("no quote is found in %s", (_name, text) => {
  expect(newPart({ text, html: null })).toBe(text);
});
