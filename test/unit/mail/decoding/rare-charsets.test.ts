import { describe, expect, test } from "bun:test";
import { parseMail } from "../../../../src/mail/reading/parse.ts";
import { rareDecoderOf } from "../../../../src/mail/decoding/rare-charsets.ts";

/** Strings as Python's codec of that name encodes them. */
const TEXTS: readonly [charset: string, octets: string, text: string][] = [
  ["utf-7", "Gr+APwA3w-e +ZeVnLIqe 1 +- 1 +2Dzfrg-!", "Grüße 日本語 1 + 1 🎮!"],
  ["utf-7", "+AOk.+AOk", "é.é"],
  ["UTF-7", "a+A-b", "ab"],
  ["iso-2022-kr", "\x1b$)C\x0eGQ19>n\x0f ok \x0eGQ\x0f\n\x0eGQ", "한국어 ok 한\n한"],
  ["iso-2022-kr", "\x1b$)C\x0eGQ\nok", "한\nok"],
  ["iso-2022-kr", "\x1b$a\x1b$)C\x0eGQ", "a한"],
  ["hz-gb-2312", "~{;aRi~} ~~ ok ~\n~{<M~}", "会议 ~ ok 纪"],
  ["hz", "~{;a\nRi", "会\nRi"],
  ["cp437", "Gr\x81\xe1e \xc4", "Grüße ─"],
  ["IBM850", "Gr\x81\xe1e \xb5", "Grüße Á"],
  ["cp852", "\x9d\xa2d\xab", "Łódź"],
  ["cp858", "\xd5", "€"],
  ["csPC850Multilingual", "\x94", "ö"],
  ["cspcp852", "\xa5", "ą"],
  ["IBM00858", "\xd5", "€"],
  ["cp737", "\x80", "Α"],
];

describe("a charset that is used in mail but unknown to browsers", () => {
  test.each(TEXTS)("%s of %j is %j", async (charset, octets, text) => {
    const mail = `Content-Type: text/plain; charset=${charset}\r\n\r\n${octets.replaceAll("\n", "\r\n")}\r\n`;
    expect((await parseMail(Buffer.from(mail, "latin1"))).text).toBe(`${text}\n`);
    // However it is cut into pieces.
    const decoder = rareDecoderOf(charset.toLowerCase());
    const pieces = [...Buffer.from(octets, "latin1")].map((octet) =>
      decoder?.decode(Uint8Array.of(octet), { stream: true }),
    );
    expect([...pieces, decoder?.decode()].join("")).toBe(text);
  });

  test.each(TEXTS.filter(([, octets]) => !octets.includes("\n")))(
    "in a header: %s of %j",
    async (charset, octets, text) => {
      const inB = `=?${charset}?B?${Buffer.from(octets, "latin1").toString("base64")}?=`;
      const inQ = `=?${charset}*en?q?${Buffer.from(octets, "latin1").toString("hex").replace(/../g, "=$&")}?=`;
      const mail = `Subject: a ${inB}\r\n ${inQ}\r\nFrom: ${inQ} <a@b.example>\r\n\r\nx`;
      const { subject, from } = await parseMail(Buffer.from(mail, "latin1"));
      expect({ subject, from: from?.name }).toEqual({ subject: `a ${text}${text}`, from: text });
    },
  );
});

test.each(["cp851", "cp9999", "ibm", "850x", "cp", "", "multilingual", "constructor", "__proto__"])(
  "a charset %j is not one of these, and its message is still read",
  async (charset) => {
    expect(rareDecoderOf(charset)).toBeNull();
    const mail = `Subject: =?${charset}?q?=41?=\r\nContent-Type: text/plain; charset="${charset}"\r\n\r\nGr\xfc\xdfe\r\n`;
    expect((await parseMail(Buffer.from(mail, "latin1"))).text).toBe("Grüße\n");
  },
);
