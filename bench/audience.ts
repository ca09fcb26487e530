/**
 * Measures a broadcast next to receipts: `bun bench/audience.ts [--contacts=N] [--rounds=N] [--json=FILE]`. Receipts leave at a steady
 * rate. The broadcast is paused and sent in turns, so that other load of the machine is in both. A customer would notice first if a
 * letter to all made the next receipt late.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { quantile } from "./prove/support/table.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder } from "./support/folder.ts";
import { numberOption, rounds } from "./support/options.ts";
import { DOMAIN, prepareData, startService } from "./support/service.ts";
import { relayTo, startSink } from "./support/sink.ts";

const CONTACTS = numberOption("contacts", 100_000);
const ROUNDS = rounds(10);
/** A window of one state, and the time after a change of state that is not measured. */
const WINDOW_MS = 5000;
const SETTLE_MS = 2000;
/** Milliseconds between two receipts. */
const RECEIPT_EVERY_MS = 50;
const POLL_MS = 250;
const HTML = `<p>Hello {{ contact.firstName }}</p>${"<p>News of the month, in some words.</p>".repeat(100)}<a href="{{ unsubscribeUrl }}">Leave</a>`;

const home = benchFolder();
const prepared = await prepareData(home);
const { child, url } = await startService(prepared.folder, {
  ROLES: "api,smtp,worker",
  QUOTA_CONTACTS: `${CONTACTS},${CONTACTS},none`,
  ...relayTo(await startSink(home)),
});

// biome-ignore lint/suspicious/noExplicitAny: a bench reads what the API shows.
async function call(method: string, path: string, body?: unknown, type = "application/json"): Promise<any> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${prepared.key}`, "content-type": type },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
  return response.json();
}

async function importContacts(): Promise<void> {
  const rows = Array.from(
    { length: CONTACTS },
    (_, at) => `person${at}@d${at % 997}.example,First${at % 5000}\n`,
  );
  const { id } = await call("POST", "/v1/contacts/import", `email,first_name\n${rows.join("")}`, "text/csv");
  while ((await call("GET", `/v1/imports/${id}`)).status !== "done") await Bun.sleep(POLL_MS);
}

interface Receipt {
  id: string;
  acceptMs: number;
}

/** Sends receipts for a window. */
async function receipts(): Promise<Receipt[]> {
  const item = { from: `shop@${DOMAIN}`, subject: "Your receipt", text: "Thank you." };
  const sends: Promise<Receipt>[] = [];
  for (
    const until = performance.now() + WINDOW_MS;
    performance.now() < until;
    await Bun.sleep(RECEIPT_EVERY_MS)
  ) {
    const begun = performance.now();
    const to = `buyer${sends.length}@shop.example`;
    sends.push(
      call("POST", "/v1/emails", { ...item, to }).then(({ id }) => ({
        id,
        acceptMs: performance.now() - begun,
      })),
    );
  }
  return Promise.all(sends);
}

await importContacts();
const topic = await call("POST", "/v1/topics", { name: "News" });
const letter = { name: "Bench", topicId: topic.id, from: `news@${DOMAIN}`, subject: "News", html: HTML };
const { id } = await call("POST", "/v1/broadcasts", letter);
await call("POST", `/v1/broadcasts/${id}/send`);
using database = new Database(join(prepared.folder, "postrider.db"), { readonly: true });
const leaving = database.query<{ ms: number | null }, [string]>(
  "SELECT sent_at - created_at AS ms FROM messages WHERE id = ?",
);
const states = { pause: [] as Receipt[], resume: [] as Receipt[] };
let sendingMs = 0;
const processorBefore = child.processor();
for (let round = 0; round < ROUNDS; round++)
  for (const state of ["pause", "resume"] as const) {
    await call("POST", `/v1/broadcasts/${id}/${state}`);
    await Bun.sleep(SETTLE_MS);
    states[state].push(...(await receipts()));
    if (state === "resume") sendingMs += WINDOW_MS + SETTLE_MS;
  }
const { counts, status } = await call("GET", `/v1/broadcasts/${id}`);
if (status !== "sending")
  throw new Error(`the broadcast was over before the end: more than ${CONTACTS} contacts are needed`);
await call("POST", `/v1/broadcasts/${id}/cancel`);
await Bun.sleep(SETTLE_MS);
const processor = (child.processor() - processorBefore) / 1e6;
const sizes = new Map(
  database
    .query<{ name: string; octets: number }, []>(
      "SELECT name, sum(pgsize) AS octets FROM dbstat GROUP BY name",
    )
    .all()
    .map(({ name, octets }) => [name, octets]),
);
const data = database
  .query<{ octets: number }, [string]>(
    "SELECT avg(octet_length(c.data)) AS octets FROM message_content c JOIN messages m ON m.id = c.message_id WHERE m.template_id = ?",
  )
  .get(id);
const figuresOf = (name: string, found: readonly Receipt[]) => {
  const left = found.flatMap((receipt) => leaving.get(receipt.id)?.ms ?? []);
  const accepts = found.map(({ acceptMs }) => acceptMs);
  return {
    [`${name}: receipts`]: found.length,
    [`${name}: accept p50, ms`]: quantile(accepts, 0.5),
    [`${name}: accept p99, ms`]: quantile(accepts, 0.99),
    [`${name}: until it left p50, ms`]: quantile(left, 0.5),
    [`${name}: until it left p99, ms`]: quantile(left, 0.99),
  };
};
const figures = {
  contacts: CONTACTS,
  "messages made": counts.recipients,
  "messages a second while sending": (counts.recipients / sendingMs) * 1000,
  ...figuresOf("paused", states.pause),
  ...figuresOf("sending", states.resume),
  "rows of the broadcast, octets per recipient": (sizes.get("broadcast_messages") ?? 0) / counts.recipients,
  "merged values, octets per recipient": data?.octets ?? 0,
  "service, processor s": processor,
};
await child.end();
for (const [name, figure] of Object.entries(figures)) console.log(`${name}: ${figure.toFixed(1)}`);
handOver({ broadcast: figures });
process.exit(0);
