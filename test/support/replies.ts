import type { Refusal } from "../../src/mail/bounces/reply-class.ts";

/** Parses a reply as the SMTP client does. `\n` in it separates its lines. */
export function refusalFrom(reply: string, stage: string): Refusal {
  const lines = reply.split("\\n").map((line) => {
    const [, code, enhanced, text] =
      /^(\d{3})[ -](?:([245]\.\d{1,3}\.\d{1,3})(?: |$))?(.*)$/.exec(line) ?? [];
    return { code: Number(code), enhanced: enhanced ?? null, text: text ?? "" };
  });
  return {
    code: lines.at(-1)?.code ?? 0,
    enhanced: lines.find(({ enhanced }) => enhanced !== null)?.enhanced ?? null,
    text: lines.map(({ text }) => text.trim()).join(" "),
    stage,
  };
}
