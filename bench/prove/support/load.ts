/**
 * The clients of a run: a fixed number of sends and messages a second, whatever the service does. Everything that is
 * not answered with `202` or `250` is brought again, a send under its Idempotency-Key and a message with its bytes.
 */
import type { Ledger } from "./ledger.ts";
import { bringMail, type MailOutcome } from "./mail-client.ts";
import { FROM, INBOX, RECIPIENT_DOMAINS } from "./service.ts";

/** Target of the load. The key may not exist yet when a load is made. */
export interface LoadTarget {
  url: string;
  /** Host of the listener; this machine if absent. */
  smtpHost?: string;
  smtpPort: number;
  key: string;
}

/** Result of one try at a send. */
export interface SendOutcome {
  /** HTTP status; null if the connection broke or the answer took too long. */
  status: number | null;
  /** Id of the message; null if it was not accepted. */
  id: string | null;
  /** `error.type` and `error.code` of a refusal, if it has an envelope. */
  type: string | null;
  code: string | null;
}

/** Time without an answer after which a send is tried again. */
const SEND_LIMIT_MS = 60_000;
/** Pause before another try. It doubles each time, like that of a client that wants to be served. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2000;
/**
 * Maximum number of items of each kind in progress. If there are more, a client skips its turn, and the skip is
 * counted.
 */
const MAX_OUTSTANDING = 200;
const TICK_MS = 10;
/** Latencies kept of each kind. */
const MAX_LATENCIES = 500_000;
const MAIL_FROM = "ada@client.test";

/** Returns the recipient of send `n`, which no other send has. */
export function recipientOf(n: number): string {
  return `person${n}@there${n % RECIPIENT_DOMAINS}.test`;
}

/**
 * Returns the bytes of message `n` on the wire: with dots at line starts, and enough lines for several pages of a
 * file.
 */
export function mailBytes(n: number): string {
  const header = [
    "From: Ada <ada@client.test>",
    `To: <${INBOX}>`,
    `Subject: mail ${n}`,
    `Message-ID: <${n}.proof@client.test>`,
    "Date: Mon, 02 Feb 2026 10:00:00 +0000",
  ];
  const lines = Array.from(
    { length: 5 + (n % 60) },
    (_, at) => `${".".repeat(at % 3)}line ${at} of mail ${n}`,
  );
  return [...header, "", ...lines, ""].join("\r\n");
}

/** Returns the text of send `n`. */
function sendText(n: number): string {
  return `This is send ${n}.\n`;
}

/** Makes one try at send `n`. */
export async function trySend(target: LoadTarget, n: number): Promise<SendOutcome> {
  const nothing = { id: null, type: null, code: null };
  try {
    const response = await fetch(`${target.url}/v1/emails`, {
      method: "POST",
      signal: AbortSignal.timeout(SEND_LIMIT_MS),
      headers: {
        authorization: `Bearer ${target.key}`,
        "content-type": "application/json",
        "idempotency-key": `proof-${n}`,
      },
      body: JSON.stringify({
        from: { email: FROM },
        to: [{ email: recipientOf(n) }],
        subject: `send ${n}`,
        text: sendText(n),
      }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: an answer of any shape is an outcome.
    const body: any = await response.json().catch(() => null);
    const { type = null, code = null } = body?.error ?? {};
    const id = response.status === 202 ? String(body?.id) : null;
    return { status: response.status, id, type, code };
  } catch {
    return { status: null, ...nothing };
  }
}

/** Makes one try at message `n`. */
export function tryMail(target: LoadTarget, n: number): Promise<MailOutcome> {
  const { smtpHost: host = "127.0.0.1", smtpPort: port } = target;
  return bringMail({ host, port }, MAIL_FROM, INBOX, mailBytes(n));
}

export interface LoadOptions {
  sendsPerSecond: number;
  mailsPerSecond: number;
  /** Records each `202` and `250`. */
  ledger: Ledger;
  /** Number of the first item: loads of one run must not share any. */
  from?: number;
}

/** A running load. */
export interface Load {
  /** Answers so far by kind: `send 202`, `send 503`, `send broken`, `mail 250`, … */
  answers: ReadonlyMap<string, number>;
  /** Milliseconds from a try's beginning to its `202` or `250`, without refused tries. */
  latencies: { send: readonly number[]; mail: readonly number[] };
  /** Items begun so far, of each kind. */
  begun(): { send: number; mail: number };
  /** Turns skipped because too many items had no answer. */
  skipped(): number;
  /** Puts later latencies into new lists. */
  forgetLatencies(): void;
  /** Begins nothing new until `resume`. */
  pause(): void;
  resume(): void;
  /**
   * Begins nothing new. Resolves with the items without an answer within the limit, after all other items have
   * theirs.
   */
  stop(limitMs: number): Promise<number>;
}

/** Starts a load. */
export function startLoad(target: LoadTarget, options: LoadOptions): Load {
  const answers = new Map<string, number>();
  const latencies = { send: [] as number[], mail: [] as number[] };
  const first = options.from ?? 0;
  const next = { send: first, mail: first };
  const owed = { send: 0, mail: 0 };
  const rates = { send: options.sendsPerSecond, mail: options.mailsPerSecond };
  const outstanding = { send: 0, mail: 0 };
  let skipped = 0;
  let paused = false;
  let over = false;

  const attempt = async (kind: "send" | "mail", n: number): Promise<string | null> => {
    const began = performance.now();
    const outcome = kind === "send" ? await trySend(target, n) : await tryMail(target, n);
    const said = ("status" in outcome ? outcome.status : outcome.code) ?? "broken";
    answers.set(`${kind} ${said}`, (answers.get(`${kind} ${said}`) ?? 0) + 1);
    const taken = said === (kind === "send" ? 202 : 250) ? outcome.id : null;
    if (taken !== null && latencies[kind].length < MAX_LATENCIES)
      latencies[kind].push(performance.now() - began);
    return taken;
  };
  const bring = async (kind: "send" | "mail", n: number): Promise<void> => {
    outstanding[kind]++;
    for (let pause = FIRST_PAUSE_MS; !over; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const id = await attempt(kind, n);
      if (id !== null) {
        // Answers after the end already count as missing.
        if (!over) await options.ledger.record({ kind, n, id });
        break;
      }
      await Bun.sleep(pause);
    }
    outstanding[kind]--;
  };
  let before = performance.now();
  const tick = setInterval(() => {
    const now = performance.now();
    const seconds = (now - before) / 1000;
    before = now;
    if (paused) return;
    for (const kind of ["send", "mail"] as const) {
      owed[kind] += rates[kind] * seconds;
      for (; owed[kind] >= 1; owed[kind]--)
        if (outstanding[kind] < MAX_OUTSTANDING) void bring(kind, next[kind]++);
        else skipped++;
    }
  }, TICK_MS);
  return {
    answers,
    latencies,
    begun: () => ({ send: next.send - first, mail: next.mail - first }),
    skipped: () => skipped,
    forgetLatencies() {
      latencies.send.length = 0;
      latencies.mail.length = 0;
    },
    pause: () => {
      paused = true;
    },
    resume: () => {
      paused = false;
    },
    async stop(limitMs) {
      clearInterval(tick);
      const until = performance.now() + limitMs;
      const left = (): number => outstanding.send + outstanding.mail;
      while (left() > 0 && performance.now() < until) await Bun.sleep(TICK_MS);
      over = true;
      return left();
    },
  };
}
