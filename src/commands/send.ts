import { type Clock, sleep, remainingTime } from "../core/time/clock.ts";
import { MOVING } from "../core/messages/states.ts";
import { API_FLAGS, apiFor } from "./support/api-access.ts";
import { type Api, callApi, type Schemas } from "./support/api-client.ts";
import { type Context, defineCommand, type Flag } from "./support/command.ts";
import { EX_NO, EX_OK, unavailable, usage } from "./support/exit.ts";
import { readInput } from "./support/input.ts";

/** Largest body from standard input, bytes. The API takes no longer text. */
export const MAX_INPUT_BYTES = 2 * 1024 * 1024;
/** Longest wait of `--wait`, seconds. */
const DEFAULT_WAIT_SECONDS = 60;
const MAX_WAIT_SECONDS = 86_400;
/** Times between two reads of the message. The first is too short to notice, and later ones grow. */
const POLL_MS = 200;
const POLL_MAX_MS = 2000;

const FLAGS = {
  from: {
    type: "string",
    value: "ADDRESS",
    required: true,
    help: "header From: `a@b.example` or `Name <a@b.example>`",
  },
  to: {
    type: "string",
    value: "ADDRESS",
    required: true,
    multiple: true,
    help: "recipient, or several separated by commas; may be given several times",
  },
  cc: { type: "string", value: "ADDRESS", multiple: true, help: "copy, in the same forms as --to" },
  bcc: { type: "string", value: "ADDRESS", multiple: true, help: "hidden copy, in the same forms as --to" },
  "reply-to": { type: "string", value: "ADDRESS", multiple: true, help: "where answers go" },
  subject: { type: "string", value: "TEXT", required: true, help: "header Subject" },
  text: { type: "string", value: "TEXT", help: "plain text body, or - to read it from standard input" },
  html: { type: "string", value: "HTML", help: "HTML body, or - to read it from standard input" },
  ...API_FLAGS,
  wait: {
    type: "boolean",
    help: "wait until the message is delivered or has failed; exit 1 if it has failed",
  },
  timeout: {
    type: "string",
    value: "SECONDS",
    help: `longest wait of --wait in seconds (default ${DEFAULT_WAIT_SECONDS})`,
  },
} as const satisfies Readonly<Record<string, Flag>>;

/** Sends a message through the API of a running service. */
export const send = defineCommand({
  name: "send",
  args: ["[-]"],
  flags: FLAGS,
  about: `Sends a message through the API of the running service, and prints its id and status. The body is --text,
--html or both. The value - reads it from standard input. With --wait it exits 0 if the message was delivered
(or handed to a smarthost), 1 if it bounced or failed, and 69 if that is not known in time. In that case the
service keeps trying. On the machine of the service it needs no key.`,
  example: `postrider send --from hello@onboarding.postrider.localhost --to owner@example.com \\
  --subject 'Hello from Postrider' --text 'It works.' --wait
postrider keys create --name sending --sender default --out sending.key
echo 'From a pipe.' | postrider send - --key-file sending.key --from hello@onboarding.postrider.localhost \\
  --to delivered@simulator.postrider.localhost --subject 'Hello again'`,
  async run({ flags, args }, context) {
    const { clock, out } = context;
    const wanted = { ...flags, input: args[0] };
    const waitMs = secondsOf(flags.timeout) * 1000;
    const bodies = await bodiesOf(wanted);
    const api = await apiFor(flags, context);
    const item = { from: flags.from, ...addresseesOf(flags), subject: flags.subject, ...bodies };
    const { id, status } = await callApi<Schemas["AcceptedMessage"]>(clock, api, "POST", "/v1/emails", item);
    if (!flags.wait) {
      out.record({ id, status }, `${id} ${status}`);
      return EX_OK;
    }
    return follow({ api, clock, out }, id, waitMs);
  },
});

interface Bodies {
  text?: string;
  html?: string;
}

interface BodyFlags {
  text: string | undefined;
  html: string | undefined;
  "key-file": string | undefined;
  input: string | undefined;
}

async function bodiesOf({ text, html, input, "key-file": keyFile }: BodyFlags): Promise<Bodies> {
  if (input !== undefined && input !== "-") throw usage(`the only argument is -, not ${input}`);
  if (input === "-" && text !== undefined) throw usage("the text is either --text or -");
  const wanted = { text: text ?? input, html };
  const fromInput = [wanted.text, wanted.html, keyFile].filter((source) => source === "-").length;
  if (fromInput > 1) throw usage("standard input can be read for one thing alone");
  if (wanted.text === undefined && wanted.html === undefined) throw usage("missing: --text, --html or -");
  return {
    ...(wanted.text === undefined ? {} : { text: await bodyOf(wanted.text) }),
    ...(wanted.html === undefined ? {} : { html: await bodyOf(wanted.html) }),
  };
}

async function bodyOf(flag: string): Promise<string> {
  return flag === "-" ? readInput(MAX_INPUT_BYTES) : flag;
}

type AddresseeFlags = Readonly<Partial<Record<"to" | "cc" | "bcc" | "reply-to", readonly string[]>>>;

/** Returns the fields of the send item that hold addresses. The API reads and checks each. */
function addresseesOf(flags: AddresseeFlags): Record<string, string[]> {
  const fields = { to: flags.to, cc: flags.cc, bcc: flags.bcc, replyTo: flags["reply-to"] };
  return Object.fromEntries(
    Object.entries(fields).flatMap(([field, lists = []]) =>
      lists.length === 0 ? [] : [[field, lists.flatMap(mailboxesIn)]],
    ),
  );
}

/**
 * Splits a list of recipients. A name may contain commas, so a comma only separates recipients if it follows an
 * address.
 */
function mailboxesIn(list: string): string[] {
  const found: string[] = [];
  let open: string[] = [];
  for (const piece of list.split(",")) {
    open.push(piece);
    const outsideQuotes = open.join(",").replace(/"[^"]*"/g, "");
    if (!outsideQuotes.includes("@") || outsideQuotes.includes('"')) continue;
    found.push(open.join(","));
    open = [];
  }
  const rest = open.join(",");
  return rest.trim() === "" ? found : [...found, rest];
}

function secondsOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_WAIT_SECONDS;
  const seconds = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds > 0 && seconds <= MAX_WAIT_SECONDS))
    throw usage(`--timeout must be a whole number of seconds from 1 to ${MAX_WAIT_SECONDS}`);
  return seconds;
}

/** Reads the message repeatedly until no recipient's status can change, or the time is over. */
async function follow(
  { api, clock, out }: { api: Api; clock: Clock; out: Context["out"] },
  id: string,
  waitMs: number,
): Promise<number> {
  const left = remainingTime(clock, waitMs);
  for (let pause = POLL_MS; ; pause = Math.min(pause * 2, POLL_MAX_MS)) {
    const found = await callApi<Schemas["Message"]>(clock, api, "GET", `/v1/emails/${id}`);
    const { status } = found;
    if (!isMoving(status)) {
      const recipients = found.recipients.map(({ email, status: its, reason, diagnostic }) => {
        return { email, status: its, reason: reason ?? null, diagnostic: diagnostic ?? null };
      });
      const lines = recipients.map((its) =>
        `  ${its.email} ${its.status} ${its.diagnostic ?? its.reason ?? ""}`.trimEnd(),
      );
      out.record({ id, status, recipients }, [`${id} ${status}`, ...lines].join("\n"));
      return ARRIVED.has(status) ? EX_OK : EX_NO;
    }
    if (left() === 0)
      throw unavailable(`${id} is still ${status} after ${waitMs / 1000} s; the service goes on with it`);
    await sleep(clock, Math.min(pause, left()));
  }
}

/** The statuses that `--wait` counts as success. */
const ARRIVED: ReadonlySet<string> = new Set(["delivered", "sent"]);

function isMoving(status: string): boolean {
  const moving: ReadonlySet<string> = MOVING;
  return moving.has(status);
}
