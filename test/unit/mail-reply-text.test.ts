import { describe, expect, test } from "bun:test";
import { MAX_REPLY_CHARS, replyText } from "../../src/mail/reply-text.ts";

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
    ["a line From: that is no header", "From: here to there\nis far", "From: here to there\nis far"],
    ["CRLF line ends", "a\r\nb\r\n\r\nOn 14 Nov 2023, Ann wrote:\r\n> q", "a\nb"],
    ["nothing but a quote", "> q", "> q"],
    ["nothing", "", ""],
  ])("%s", (_name, text, expected) => {
    expect(replyText(text)).toBe(expected);
  });

  test("a text over the limit is taken whole", () => {
    const text = `a\n\n-- \n${"x".repeat(MAX_REPLY_CHARS)}`;
    expect(replyText(text)).toBe(text);
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
  ])("is found in linear time in %j repeated", (piece) => {
    const text = piece.repeat(MAX_REPLY_CHARS / piece.length);
    const started = Bun.nanoseconds();
    replyText(text);
    expect((Bun.nanoseconds() - started) / 1e6).toBeLessThan(1000);
  });
});
