import { describe, expect, test } from "bun:test";
import { htmlText, MAX_HTML_CHARS, previewOf } from "../../../../src/mail/text/preview.ts";
import {
  htmlReplyText,
  MAX_PREVIEW_READ_CHARS,
  MAX_REPLY_CHARS,
  newPreview,
  replyText,
} from "../../../../src/mail/text/reply-text.ts";
import { cpuMs } from "../../../support/cpu-time.ts";

describe("the new part of a reply", () => {
  test.each<[string, string, string]>([
    ["English", "Yes.\n\nOn Tue, Nov 14, 2023 at 10:13 PM Ann <ann@example.com> wrote:\n> Really?\n", "Yes."],
    [
      "an introduction over two lines",
      "Yes.\n\nOn Tue, 14 Nov 2023 at 22:13, Ann Example\n<ann@example.com> wrote:\n\n> Really?",
      "Yes.",
    ],
    ["German", "Ja.\n\nAm 14.11.2023 um 22:13 schrieb Ann Example:\n> Wirklich?", "Ja."],
    ["French", "Oui.\n\nLe mar. 14 nov. 2023 à 22:13, Ann <ann@example.com> a écrit :\n> Vraiment ?", "Oui."],
    ["Spanish", "Sí.\n\nEl mar, 14 nov 2023 a las 22:13, Ann (<ann@example.com>) escribió:\n> ¿Sí?", "Sí."],
    ["Chinese", "好\n\n在 2023年11月14日，下午10:13，Ann <ann@example.com> 写道：\n> 吗", "好"],
    ["an address and a colon", "Ok\n\n2023-11-14 22:13 GMT+01:00 Ann <ann@example.com>:\n> q", "Ok"],
    [
      "Outlook",
      "Fine.\n\n________________________________\nFrom: Ann <ann@example.com>\nSent: Tuesday, 14 November 2023\nTo: Bob\nSubject: Hi\n\nQuestion",
      "Fine.",
    ],
    ["a separator", "Fine.\n\n-----Original Message-----\nFrom: Ann\n\nQuestion", "Fine."],
    ["a signature", "Fine.\n\n-- \nBob\nBuilder", "Fine."],
    [
      "a telephone",
      "Fine.\n\nSent from my iPhone\n\nOn 14 Nov 2023, at 22:13, Ann <a@example.com> wrote:\n\n> q",
      "Fine.",
    ],
    [
      "a mail program",
      "Fine.\n\nSent with [Proton Mail](https://proton.me/mail/home) secure email.",
      "Fine.",
    ],
    ["no mail program", "The parcel is\n\nSent with care", "The parcel is\n\nSent with care"],
    ["quoted lines at the end", "Fine.\n> q\n> r\n", "Fine."],
    [
      "an answer below the quoted mail",
      "On Tue, 14 Nov 2023, Ann <a@example.com> wrote:\n> q\n> r\n\nFine.\n\n-- \nBob",
      "Fine.",
    ],
    [
      "answers between quoted lines",
      "On Tue, 14 Nov 2023, Ann <a@example.com> wrote:\n> q\nyes\n> r\nno",
      "yes\n> r\nno",
    ],
    ["no quote at all", "On Monday I wrote:\na list", "On Monday I wrote:\na list"],
    ["a line From: that is not a header", "From: here to there\nis far", "From: here to there\nis far"],
    ["CRLF line ends", "a\r\nb\r\n\r\nOn 14 Nov 2023, Ann wrote:\r\n> q", "a\nb"],
    ["only a quote", "> q", "> q"],
    ["Turkish", "Evet\n\nAnn <a@x.test>, 14 Kas 2023 Sal, 22:13 tarihinde şunu yazdı:\n\n> q", "Evet"],
    ["Czech", "Ano\n\nút 14. 11. 2023 v 22:13 odesílatel Ann <a@x.test> napsal:\n\n> q", "Ano"],
    ["Hungarian", "Igen\n\nAnn <a@x.test> ezt írta (időpont: 2023. nov. 14., K, 22:13):\n\n> q", "Igen"],
    ["an unknown language", "Opo\n\nTon 14/11/2023 22:13 o Ann egrapse:\n\n> q", "Opo"],
    ["an introduction right below the answer", "Yes I agree\nAnn <a@x.test>:\n> q", "Yes I agree"],
    [
      "GMX, whose header begins with the date",
      'Passt.\n\nGesendet: Dienstag, 14. November 2023 um 22:13 Uhr\nVon: "Ann" <a@x.test>\nAn: b@x.test\nBetreff: q\n\nFrage',
      "Passt.",
    ],
    [
      "a sentence that looks like an introduction",
      "On Monday I met 3 people and here is what they wrote:\n- a\n\nOn 14 Nov 2023 Ann <a@x.test> wrote:\n> q",
      "On Monday I met 3 people and here is what they wrote:\n- a",
    ],
    ["quoted lines above the signature", "Fine.\n\n> q\n\n-- \nBob", "Fine."],
    ["a Japanese telephone", "はい\n\niPhoneから送信", "はい"],
    [
      "a divider above much text is no signature",
      "News\n____\n1\n2\n3\n4\n5\n6",
      "News\n____\n1\n2\n3\n4\n5\n6",
    ],
    [
      "a sentence that looks like a phone's signature",
      "Hi,\nSent from the new office:\n1\n2\n3\n4\n5\n6",
      "Hi,\nSent from the new office:\n1\n2\n3\n4\n5\n6",
    ],
    [
      "a mark that a relay has put before From",
      "Hi\n>From here on all is new",
      "Hi\n>From here on all is new",
    ],
    ["a list's footer", "Fine.\n\n_______\nlist@x.test\nTo leave: x\n", "Fine."],
    [
      "a list's footer below the quoted mail",
      "Fine.\n\nOn 14 Nov 2023, Ann <a@x.test> wrote:\n> q\n\n_______\nlist@x.test\nTo leave: x\n",
      "Fine.",
    ],
    ["a signature below the quoted mail", "Fine.\n\nOn 14 Nov 2023, Ann wrote:\n> q\n\n-- \nBob", "Fine."],
    [
      "only a quote and a signature",
      "On 14 Nov 2023, Ann wrote:\n> q\n\n-- \nBob",
      "On 14 Nov 2023, Ann wrote:\n> q\n\n-- \nBob",
    ],
    [
      "Outlook in French, with its spaces",
      "Oui.\n\nDe\u00a0: Ann <a@x.test>\nEnvoyé\u00a0: mardi 14 novembre 2023\nÀ\u00a0: Bob\nObjet\u00a0: q\n\nQuestion",
      "Oui.",
    ],
    [
      "Hebrew, with its marks",
      "כן\n\n\u202bבתאריך יום ג׳, 14 בנוב׳ 2023 ב-22:13 מאת \u202aAnn\u202c <\u202aa@x.test\u202c>:\u202c\n\n> q",
      "כן",
    ],
    ...[
      ["Czech", "Od: Ann", "Odesláno: úterý 14. listopadu 2023", "Komu: Bob", "Předmět: q"],
      ["Finnish", "Lähettäjä: Ann", "Lähetetty: tiistai 14.11.2023", "Vastaanottaja: Bob", "Aihe: q"],
      ["Hungarian", "Feladó: Ann", "Elküldve: 2023. november 14.", "Címzett: Bob", "Tárgy: q"],
      ["Turkish", "Kimden: Ann", "Gönderildi: 14 Kasım 2023", "Kime: Bob", "Konu: q"],
      ["Korean", "보낸 사람: Ann", "보낸 날짜: 2023년 11월 14일", "받는 사람: Bob", "제목: q"],
      ["Chinese of Taiwan", "寄件者: Ann", "寄件日期: 2023年11月14日", "收件者: Bob", "主旨: q"],
    ].map(([language, ...lines]): [string, string, string] => [
      `Outlook in ${language}`,
      `Ok.\n\n${lines.join("\n")}\n\nq`,
      "Ok.",
    ]),
    ["a telephone of Samsung's, in German", "Gut.\n\nVon meinem/meiner Galaxy gesendet", "Gut."],
    ["Outlook's telephone, in German", "Gut.\n\nOutlook für iOS beziehen<https://aka.ms/o0ukef>", "Gut."],
    ["a sentence about it", "Gut.\n\nIch habe Outlook für iOS", "Gut.\n\nIch habe Outlook für iOS"],
    [
      "a phone's signature in the middle of the text",
      "Colis\nEnvoyé de Paris hier\nMerci",
      "Colis\nEnvoyé de Paris hier\nMerci",
    ],
    [
      "a journey",
      "Please book:\n\nFrom: Berlin\nTo: Munich\nDate: 14 Nov\n\nThanks",
      "Please book:\n\nFrom: Berlin\nTo: Munich\nDate: 14 Nov\n\nThanks",
    ],
    [
      "a header of Lotus Notes without a subject",
      "Gut.\n\nVon: Ann <a@x.test>\nAn: Bob\nDatum: 14.11.2023\n\nq",
      "Gut.",
    ],
    [
      "a sentence that ends with an address",
      "Hi,\n\nPlease mail it to Ann <a@x.test>:\n\n- the form",
      "Hi,\n\nPlease mail it to Ann <a@x.test>:\n\n- the form",
    ],
    [
      "minutes",
      "Minutes\n\nAnn <a@x.test>:\nlate\n\nBob <b@x.test>:\nill",
      "Minutes\n\nAnn <a@x.test>:\nlate\n\nBob <b@x.test>:\nill",
    ],
    [
      "a German sentence about writing",
      "Hi\n\nAm 3.5. um 10:00 hat er geschrieben:\n\nJa",
      "Hi\n\nAm 3.5. um 10:00 hat er geschrieben:\n\nJa",
    ],
    ["nothing", "", ""],
  ])("%s", (_name, text, expected) => {
    expect(replyText(text)).toBe(expected);
  });

  test.each([
    ["Apple Mail in Dutch", "Op 14 nov 2023, om 22:13 heeft Ann <a@x.test> het volgende geschreven:", "q"],
    [
      "Apple Mail in Polish",
      "Wiadomość napisana przez Ann <a@x.test> w dniu 14 lis 2023, o godz. 22:13:",
      "q",
    ],
    ["Apple Mail in Finnish", "Ann <a@x.test> kirjoitti 14.11.2023 kello 22.13:", "q"],
    [
      "Yahoo in German",
      "Am Dienstag, 14. November 2023 um 22:13 MEZ hat Ann <a@x.test> Folgendes geschrieben:",
      "q",
    ],
    [
      "Gmail in Arabic",
      "في الثلاثاء، ١٤ نوفمبر ٢٠٢٣ في ١٠:١٣ م تمت كتابة ما يلي بواسطة Ann <\na@x.test>:",
      "> q",
    ],
    ["Gmail in Vietnamese", "Vào Th 3, 14 thg 11, 2023 vào lúc 22:13 Ann <\na@x.test> đã viết:", "> q"],
    ["Gmail in Catalan", "Missatge de Ann <a@x.test> del dia dt., 14 de nov. 2023 a les\n22:13:", "> q"],
    ["T-Online", "-----Original-Nachricht-----\nBetreff: q\nDatum: 2023-11-14T22:13:11+0100", "q"],
    ["Zimbra in German", '----- Ursprüngliche Mail -----\nVon: "Ann" <a@x.test>', "q"],
    ["Zimbra in French", '----- Mail original -----\nDe: "Ann" <a@x.test>', "q"],
    ["NetEase", "---- 回复的原邮件 ----\n| 发件人 | Ann<a@x.test> |", "q"],
    ["Apple Mail, a mail passed on", "Begin forwarded message:\n\nFrom: Ann <a@x.test>\nSubject: q", "q"],
    ["Outlook in Arabic", "من: Ann <a@x.test>\n\u200f\u200fتم الإرسال: الثلاثاء\nإلى: Bob\nالموضوع: q", "q"],
    ["Outlook in Hebrew", "מאת: Ann <a@x.test>\nנשלח: יום שלישי\nאל: Bob\nנושא: q", "q"],
    ["Outlook in Croatian", "Od: Ann\nPoslano: utorak\nPrima: Bob\nPredmet: q", "q"],
    ["Outlook in Vietnamese", "Từ: Ann\nĐã gửi: Thứ Ba\nĐến: Bob\nChủ đề: q", "q"],
    ["Foxmail", "发件人： Ann\n日期： 2023-11-14 22:13\n收件人： Bob", "q"],
  ])("the new part of a reply comes before the part that %s quotes", (_, introduction, quoted) => {
    expect(replyText(`New.\n\n${introduction}\n\n${quoted}`)).toBe("New.");
  });

  test.each([
    ["Arabic", "أُرسلت من الـ iPhone"],
    ["Chinese of Taiwan", "從我的 iPhone 傳送"],
    ["Czech", "Odesláno z iPhonu"],
    ["Finnish", "Lähetetty iPhonesta"],
    ["Greek", "Στάλθηκε από το iPhone μου"],
    ["Hebrew", "נשלח מה-iPhone שלי"],
    ["Japanese", "iPadから送信"],
    ["Korean", "나의 iPhone에서 보냄"],
    ["Turkish", "iPhone'umdan gönderildi"],
    ["Ukrainian", "Надіслано з iPhone"],
  ])("the new part of a reply comes before a phone's signature in %s", (_, line) => {
    expect(replyText(`New.\n\n${line}\n\n> On 14 Nov 2023, at 22:13, Ann <a@x.test> wrote:\n> \n> q`)).toBe(
      "New.",
    );
  });

  const quoted = "> q\n".repeat(MAX_REPLY_CHARS / 4);
  const intro = "On 14 Nov 2023, Ann <a@x.test> wrote:\n";
  test.each([
    ["quotes below its answer", `Fine.\n\n${intro}${quoted}`, "Fine."],
    ["quotes above its answer", `${intro}${quoted}\nFine.`, null],
    ["has answers between quoted lines", `See below.\n\n${intro}> q\nyes\n${quoted}`, null],
    ["is the whole text if no quote is found", `a\n\n-- \n${"x".repeat(MAX_REPLY_CHARS)}`, null],
  ])(
    "a body over the limit is searched only at its beginning; it counts as wholly new if it %s",
    (_, text, new_) => {
      expect(replyText(text)).toBe(new_ ?? text);
    },
  );

  test.each([
    [
      "Gmail",
      '<div>Yes.</div><div class="gmail_quote"><div>On 14 Nov 2023, Ann &lt;a@x.test&gt; wrote:<br></div><blockquote>q</blockquote></div>',
      "Yes.",
    ],
    [
      "Outlook",
      "<p>Yes.</p><div><p><b>From:</b> Ann<br><b>Sent:</b> Tuesday<br><b>To:</b> Bob<br><b>Subject:</b> q</p></div><p>q</p>",
      "Yes.",
    ],
    [
      "Outlook with a rule",
      '<div>Yes.</div><hr><div id="divRplyFwdMsg"><b>From:</b> Ann<br><b>Sent:</b> Tuesday<br><b>To:</b> Bob<br><b>Subject:</b> q</div>',
      "Yes.",
    ],
    [
      "Apple Mail",
      '<div>Yes.</div><div><blockquote type="cite">On 14 Nov 2023, at 22:13, Ann &lt;a@x.test&gt; wrote:<br></blockquote></div><blockquote type="cite">q</blockquote>',
      "Yes.",
    ],
    [
      "and becomes the preview",
      '<div style="DISPLAY: none">Peek</div><p hidden>x</p><span style="color:red;visibility:hidden">y</span><p>Yes.</p>',
      "Yes.",
    ],
    ["without a quote", "<h1>Title</h1><p>One &amp; two</p>", "Title\n\nOne & two"],
    ["without text", '<img src="x">', null],
    [
      "too long to be read, its quote at the top",
      `<p>Yes.</p><p>On 14 Nov 2023, Ann &lt;a@x.test&gt; wrote:</p><blockquote>${"q ".repeat(MAX_HTML_CHARS / 2)}</blockquote>`,
      "Yes.",
    ],
    ["too long to be read", `<p>${"q ".repeat(MAX_HTML_CHARS / 2)}</p>`, null],
  ])("the new part of a reply is found in html: %s", (_name, html, expected) => {
    expect(htmlReplyText(html)).toBe(expected);
  });

  test("headings do not become capitals in a preview", () => {
    expect(previewOf(null, "<h1>Your order</h1><p>Thanks</p>")).toBe("Your order Thanks");
  });

  test.each([
    "x on at ",
    "Op schreef \n",
    "abc. skrev \n",
    " \n",
    "On 1 ",
    "On 1\n",
    "a <a@b>:",
    "Am 1 schrieb :",
    "From:\n",
    "> \n",
    "-",
    "1:\n",
    "<a@b>:1:11\n",
    "1 <a@b> 1:11\n",
    "From: a\nTo: b\nDate: c\n",
    "Begin forwarded message\n",
    "iPhone'umdan \n",
    "Küldve \n",
    "Sent from my iPhone\n\n",
    "a\nSent from my iPhone\n\n",
    "---- 1:11 <a@b>\n",
    "--- a --2023-1-1 1:11\n",
    "<a@b\n> :\n",
    "1:11 <\n",
    "_____\n@\n",
    "--\n",
  ])("the new part of a reply is found in linear time in %j repeated", (piece) => {
    const text = piece.repeat(MAX_REPLY_CHARS / piece.length);
    const started = cpuMs();
    replyText(text);
    expect(cpuMs() - started).toBeLessThan(1000);
  });
});

describe("the preview of a message", () => {
  const quoted = (length: number): string => {
    const introduction = "On Tue, 14 Nov 2023, Ann <a@example.com> wrote:\n";
    return `${introduction}${"> q\n".repeat(length / 4).slice(introduction.length)}`;
  };
  const below = "\nFine.";

  test("the preview of a message shows new text below a quoted message, within the part that is read", () => {
    const within = `${quoted(MAX_PREVIEW_READ_CHARS - below.length - 2)}${below}`;
    expect(newPreview({ text: within, html: null })).toBe("Fine.");
    const beyond = `${quoted(MAX_PREVIEW_READ_CHARS)}${below}`;
    expect(newPreview({ text: beyond, html: null })).toStartWith("On Tue,");
  });

  test("the preview of a message reads no more of html than of text, from the body's beginning on", () => {
    const head = `<head><style>${"p { color: red }\n".repeat(1500)}</style></head>`;
    const html = (before: number) =>
      `<html>${head}<BODY class=a>${" ".repeat(before)}<p>Hi</p></BODY></html>`;
    expect(newPreview({ text: null, html: html(MAX_PREVIEW_READ_CHARS - 100) })).toBe("Hi");
    expect(newPreview({ text: null, html: html(MAX_PREVIEW_READ_CHARS) })).toBe("");
    expect(newPreview({ text: " ", html: html(MAX_PREVIEW_READ_CHARS) })).toBe("");
    expect(newPreview({ text: null, html: "<p>No body</p>" })).toBe("No body");
  });

  test("the preview of a message leaves out invisible fillers, and keeps characters that join letters", () => {
    const html = `<p>Your order${"&#847;&zwnj;&nbsp;&#8203; ".repeat(100)}</p><p>می\u200cخواهم 👨\u200d👩</p>`;
    expect(newPreview({ text: null, html })).toBe("Your order\u034f\u200c می\u200cخواهم 👨\u200d👩");
  });

  test("the preview of a message is the beginning of its text if it has nothing new", () => {
    expect(newPreview({ text: "> q\n> r", html: null })).toBe("> q > r");
    expect(newPreview({ text: null, html: null })).toBe("");
  });
});

test("separates the cells of a table by space and its rows by lines", () => {
  const table = "<table><tr><th>a</th><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>";
  expect(htmlText(`<p>x</p>${table}<p>y</p>`)).toBe("x\n\na b\nc d\n\ny");
});
