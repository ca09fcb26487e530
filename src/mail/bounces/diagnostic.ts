/** The codes and the stage that a server names in the text of its refusal. */
export interface Diagnostic {
  code: number | null;
  enhanced: string | null;
  stage: string | null;
}

/**
 * Phrases that name a command, such as Postfix's "(in reply to RCPT TO command)", and our name for its stage.
 */
const STAGES: readonly (readonly [pattern: RegExp, stage: string])[] = [
  [
    /in reply to end of data|after (?:pipelined )?end of data|end of (?:data|message)|after data\b|<CRLF>\.<CRLF>|(?:after|while) sending data block|\bfor text command/i,
    "final",
  ],
  // DMA: "did not like our RCPT TO", United Internet: "after RCPT command", hMailServer: "sent: RCPT TO".
  [/\bdid not like our (?:final )?data\b/i, "final"],
  [
    /(?:in reply to|in response to|response to|after|at|during|while sending|>>>)\W{0,3}(?:the )?(?:pipelined )?(?:smtp )?(?:command )?rcpt to|rcpt to (?:command|failed|stage)|\b(?:did not like our|after|following|sent:|at|for) (?:pipelined )?rcpt\b|\bfor recipient command|<<< ?rcpt to/i,
    "rcpt",
  ],
  [
    /(?:in reply to|in response to|response to|after|at|during|while sending|>>>)\W{0,3}(?:the )?(?:pipelined )?(?:smtp )?(?:command )?mail from|mail from (?:command|failed|stage)|\b(?:did not like our|sent:) mail\b|\bfor sender command|<<< ?mail from/i,
    "mail",
  ],
  [
    /(?:in reply to|in response to|response to|after|at|during|>>>)\W{0,3}(?:the )?(?:smtp )?(?:command )?(?:helo|ehlo)/i,
    "ehlo",
  ],
  [/(?:in reply to|in response to|response to|after|>>>)\W{0,3}(?:smtp )?(?:command )?data\b/i, "data"],
  // qmail-remote uses its own words.
  [/(?:not like recipient|recipient was rejected)/i, "rcpt"],
  [/(?:not like sender|sender was rejected)/i, "mail"],
  [/my name was rejected/i, "ehlo"],
  [/failed after i sent the message|failed on data command/i, "final"],
  [
    /greeting failed|initial (?:connection|greeting|server greeting)|refused to talk to me|did not like our connection/i,
    "connect",
  ],
];

/** The text that servers put before a reply they quote: "Remote host said: 550 …", "host mx[192.0.2.1] said: 550 …". */
const QUOTED =
  /\b(?:said|replied|responded|answered|refused to talk to me|(?:server returned|response|error)(?: from [^:]{1,100})? was)(?: ?\[[^\]]{0,40}\])? ?: ?(?=[45]\d\d\b)/i;
/** The text that Postfix puts after it. */
const IN_REPLY_TO = /\(in reply to [^()]{1,40}\)/gi;

/**
 * Returns the peer's reply within a reporting server's text. IronPort and others write "5.1.0 - Unknown address error
 * 550-'5.7.1 …'". qmail writes "but sender was rejected. Remote host said: 421 …". The text before the reply is a
 * guess.
 */
export function peerReply(reported: string): string {
  const text = folded(reported);
  const quoted = /[45]\d\d[ -]'([^']{3,})'/.exec(text)?.[0];
  if (quoted !== undefined) return quoted;
  // If it begins with a code, it is the peer's reply, even if it quotes others: Postfix's address verification
  // quotes hosts.
  const found = /^[45]\d\d[ -]/.test(text) ? null : QUOTED.exec(text);
  return (found === null ? text : text.slice(found.index + found[0].length)).replace(IN_REPLY_TO, "");
}

/**
 * Reads the reply code, the enhanced code and the stage from a diagnostic. The last enhanced code is nearest to the
 * peer's reply.
 */
export function readDiagnostic(reported: string): Diagnostic {
  const text = folded(reported);
  const code =
    /(?:^|[^\d.\w-])([45]\d\d)(?=[\s#-]|$)(?! ?(?:bytes|octets|kb|mb|messages|seconds|hours|days))/i.exec(
      text,
    )?.[1];
  const enhanced = [...text.matchAll(/(?:^|[^\d.])([45]\.[0-7]\.\d{1,3})(?![\d.]|\]| ?ms)/g)].map(
    (match) => match[1],
  );
  const own = enhanced.findLast((candidate) => code === undefined || candidate?.[0] === code[0]);
  // "554 4.4.7 Message expired": of another class, but right after the code.
  const adjacent = /(?:^|[^\d.\w-])[45]\d\d[ -]#?([45]\.[0-7]\.\d{1,3})(?![\d.])/.exec(text)?.[1];
  return {
    code: code === undefined ? null : Number(code),
    enhanced: own ?? adjacent ?? null,
    stage: STAGES.find(([pattern]) => pattern.test(text))?.[1] ?? null,
  };
}

/**
 * Collapses each run of white space to one space. Servers break their lines anywhere, so a phrase is only found if
 * its words are on one line.
 */
export function folded(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
