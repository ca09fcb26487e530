import { describe, expect, test } from "bun:test";
import {
  type ChangeText,
  changeTexts,
  MAX_CHANGED_OCTETS,
} from "../../../../src/mail/submitted/change-texts.ts";
import { MAX_DEPTH, MAX_TEXT_PARTS } from "../../../../src/mail/submitted/text-parts.ts";
import { parseMail } from "../../../../src/mail/reading/parse.ts";

const MARK = "<mark>";
const CHANGE: ChangeText = (text, kind) => (kind === "html" ? text.replace("MARK", MARK) : text);

function bytes(lines: readonly string[]): Buffer {
  return Buffer.from(`${lines.join("\r\n")}\r\n`, "latin1");
}

function changed(lines: readonly string[], change = CHANGE): string {
  return changeTexts(bytes(lines), change).toString("latin1");
}

const HTML = ["Content-Type: text/html; charset=utf-8", "", "<p>MARK</p>"];

function multipart(type: string, ...parts: (readonly string[])[]): string[] {
  return [
    `Content-Type: multipart/${type}; boundary="=b"`,
    "",
    "preamble",
    ...parts.flatMap((part) => ["--=b", ...part]),
    "--=b--",
    "epilogue",
  ];
}

describe("a changed text", () => {
  test.each([
    ["7bit", "<p>MARK u</p>"],
    ["8bit", "<p>MARK \xc3\xbc</p>"],
    ["quoted-printable", "<p>MARK =C3=BC=\r\n</p>"],
    ["base64", Buffer.from("<p>MARK ü</p>").toString("base64")],
  ])("a changed text of a whole message in %s is what a reader sees", async (encoding, body) => {
    const lines = ["From: a@b.example", HTML[0] ?? "", `Content-Transfer-Encoding: ${encoding}`, "", body];
    const raw = changeTexts(bytes(lines), CHANGE);
    const seen = await parseMail(raw);
    expect(seen.html?.trim()).toBe(`<p>${MARK} ${encoding === "7bit" ? "u" : "ü"}</p>`);
    expect(raw.toString("latin1")).toEndWith("\r\n");
    expect(raw.toString("latin1").match(/^Content-Transfer-Encoding:/gm)).toHaveLength(1);
  });

  test("a changed text leaves all other octets of the message as they are", () => {
    const file = ["Content-Type: application/x-unknown", "X-Odd :  y", "", "\x01\xff MARK"];
    const text = ["Content-Type: text/plain", "", "MARK"];
    const lines = multipart("mixed", text, HTML, file);
    const before = bytes(lines).toString("latin1");
    const html = HTML.join("\r\n");
    const written = `${HTML[0]}\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>${MARK}</p>`;
    expect(changed(lines)).toBe(before.replace(html, written));
  });

  test("a changed text is found in nested parts and under any boundary", async () => {
    const inner = multipart("alternative", ["", "plain"], HTML).map((line) => line.replace("=b", "=b=2"));
    const raw = changeTexts(bytes(["MIME-Version: 1.0", ...multipart("related", inner, ["", "x"])]), CHANGE);
    expect((await parseMail(raw)).html).toContain(MARK);
  });

  test("a changed text in another charset keeps its octets", () => {
    const lines = ["Content-Type: text/html; charset=windows-1252", "", "<p>\xe4 MARK</p>"];
    expect(changed(lines)).toContain(`<p>=E4 ${MARK}</p>`);
    expect(changed(["Content-Type: text/html; charset=iso-2022-jp", "", "MARK"])).not.toContain(MARK);
    expect(changed(["Content-Type: text/html; charset=utf-16", "", "MARK"])).not.toContain(MARK);
  });

  test("a changed text has lines that fit SMTP, however long its links are", () => {
    const long: ChangeText = (text) => text.replace("MARK", "x".repeat(5000));
    for (const line of changed(["MIME-Version: 1.0", ...HTML], long).split("\r\n"))
      expect(line.length).toBeLessThan(998);
  });
});

describe("a message stays as it is", () => {
  const signed = multipart("signed; protocol=x", HTML, ["Content-Type: application/pgp-signature", "", "y"]);
  test.each([
    ["if it is signed", signed],
    ["if it is encrypted", multipart("encrypted", HTML)],
    [
      "if a part within it is signed",
      multipart(
        "mixed",
        signed.map((line) => line.replace("=b", "=c")),
      ),
    ],
    ["if the html is a file", ["Content-Type: text/html", "Content-Disposition: attachment", "", "MARK"]],
    ["if the html is in a message within", ["Content-Type: message/rfc822", "", ...HTML]],
    [
      "if its encoding is unknown",
      ["Content-Type: text/html", "Content-Transfer-Encoding: x-uuencode", "", "MARK"],
    ],
    ["if it has no boundary", ["Content-Type: multipart/mixed", "", ...HTML]],
    ["if nothing changes", multipart("mixed", ["", "a\t \xe4"], ["Content-Type: text/html", "", "none"])],
    ["if it is empty", []],
  ])("%s", (_, lines) => {
    expect(changed(lines)).toBe(bytes(lines).toString("latin1"));
  });

  test("beyond the limits of size, depth and number", () => {
    const large = ["Content-Type: text/html", "", `MARK${"x".repeat(MAX_CHANGED_OCTETS)}`];
    expect(changed(large)).not.toContain(MARK);
    let deep: string[] = HTML;
    for (let level = 0; level <= MAX_DEPTH; level++)
      deep = multipart("mixed", deep).map((line) =>
        line.replace(/=b"?$|=b--$/, (end) => end.replace("=b", `=b${level}`)),
      );
    expect(changed(deep)).not.toContain(MARK);
    const many = multipart("mixed", ...Array.from({ length: MAX_TEXT_PARTS - 1 }, () => ["", "x"]), HTML);
    expect(changed(many)).not.toContain(MARK);
  });
});
