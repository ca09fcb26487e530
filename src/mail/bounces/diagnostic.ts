/** What a server's own words tell of the refusal they report. */
export interface Diagnostic {
  code: number | null;
  enhanced: string | null;
  stage: string | null;
}

/** The command named in a text, e.g. Postfix's "(in reply to RCPT TO command)", and our name for its stage. */
const STAGES: readonly (readonly [pattern: RegExp, stage: string])[] = [
  [/in reply to end of data|after end of data|end of (?:data|message)|after data\b|<CRLF>\.<CRLF>/i, "final"],
  // DMA: "did not like our RCPT TO", United Internet: "after RCPT command", hMailServer: "sent: RCPT TO".
  [/\bdid not like our (?:final )?data\b/i, "final"],
  [
    /(?:in reply to|after|response to|>>>)\W{0,3}(?:smtp )?(?:command )?rcpt to|rcpt to (?:command|failed)|\b(?:did not like our|after|following|sent:) rcpt\b/i,
    "rcpt",
  ],
  [
    /(?:in reply to|after|response to|>>>)\W{0,3}(?:smtp )?(?:command )?mail from|mail from (?:command|failed)/i,
    "mail",
  ],
  [/(?:in reply to|after|response to|>>>)\W{0,3}(?:smtp )?(?:command )?(?:helo|ehlo)/i, "ehlo"],
  [/(?:in reply to|after|response to|>>>)\W{0,3}(?:smtp )?(?:command )?data\b/i, "data"],
  // qmail-remote says it in words of its own.
  [/(?:not like recipient|recipient was rejected)/i, "rcpt"],
  [/(?:not like sender|sender was rejected)/i, "mail"],
  [/my name was rejected/i, "ehlo"],
  [/failed after i sent the message|failed on data command/i, "final"],
  [/greeting failed|initial (?:connection|greeting|server greeting)|refused to talk to me/i, "connect"],
];

/** What reporters write before the reply that they quote: "Remote host said: 550 …", "host mx[192.0.2.1] said: 550 …". */
const QUOTED =
  /\b(?:said|replied|responded|answered|refused to talk to me)(?: ?\[[^\]\n]{0,40}\])?\s*:\s*(?=[45]\d\d\b)/i;
/** What Postfix writes behind it. */
const IN_REPLY_TO = /\(in reply to [^()\n]{1,40}\)/gi;

/**
 * The peer's own words within a reporter's. IronPort and others write "5.1.0 - Unknown address error 550-'5.7.1 …'",
 * qmail "but sender was rejected. Remote host said: 421 …", where what stands before the reply is their guess.
 */
export function peerWords(text: string): string {
  const quoted = /[45]\d\d[ -]'([^']{3,})'/.exec(text)?.[0];
  if (quoted !== undefined) return quoted;
  // What begins with a code is the peer's own reply, whomever it quotes: Postfix's address verification quotes hosts.
  const found = /^[45]\d\d[ -]/.test(text) ? null : QUOTED.exec(text);
  return (found === null ? text : text.slice(found.index + found[0].length)).replace(IN_REPLY_TO, "");
}

/** Reads reply code, enhanced code and stage out of a text. The last enhanced code stands nearest to the peer's own words. */
export function readDiagnostic(text: string): Diagnostic {
  const code =
    /(?:^|[^\d.\w-])([45]\d\d)(?=[\s#-]|$)(?! ?(?:bytes|octets|kb|mb|messages|seconds|hours|days))/i.exec(
      text,
    )?.[1];
  const enhanced = [...text.matchAll(/(?:^|[^\d.])([45]\.\d{1,3}\.\d{1,3})(?![\d.]|\]| ?ms)/g)].map(
    (match) => match[1],
  );
  const own = enhanced.findLast((candidate) => code === undefined || candidate?.[0] === code[0]);
  // "554 4.4.7 Message expired": of another class, but right behind the code.
  const adjacent = /(?:^|[^\d.\w-])[45]\d\d[ -]#?([45]\.\d{1,3}\.\d{1,3})(?![\d.])/.exec(text)?.[1];
  return {
    code: code === undefined ? null : Number(code),
    enhanced: own ?? adjacent ?? null,
    stage: STAGES.find(([pattern]) => pattern.test(text))?.[1] ?? null,
  };
}
