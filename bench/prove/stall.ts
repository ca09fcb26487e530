/**
 * Proves that no shape of a body stalls the thread that checks signatures, nor gets a forged mail past `p=reject`:
 * `bun bench/prove/stall.ts [--control] [--mib=24] [--rounds=3] [--seconds=6]`. Forged messages have one line of many bytes
 * and two junk signatures. The live load is measured while large honest messages arrive, and while forged ones do, in turns.
 */
import { join } from "node:path";
import { startChild } from "../support/children.ts";
import { median } from "../support/table.ts";
import { openLedger } from "./support/ledger.ts";
import { endWithin } from "./support/limit.ts";
import { startLoad } from "./support/load.ts";
import type { LargeMailAnswer, LargeMailOptions } from "./support/large-mail-options.ts";
import { INBOX, startGround } from "./support/service.ts";
import { standStill } from "./support/stand-still.ts";
import { allOf, atMost, conclude, fact, isControl, none, numberOption, quantile } from "./support/table.ts";

const MAILS_PER_SECOND = 25;
/** Large messages that arrive at a time. */
const AT_ONCE = 4;
const WARM_MS = 3000;
const STOP_LIMIT_MS = 30_000;
const LIMIT_MS = 300_000;
const MEBIBYTE = 1024 * 1024;
/** How much longer live mail may wait for forged mail than for honest mail of the same size. */
const FACTOR = 2;
/** Time in which one forged mail must be answered: a thread that is silent for longer counts as stalled. */
const ANSWER_MS = 2000;
const REFUSED = 550;
const BANK = "bank.test";

const octets = numberOption("mib", 24) * MEBIBYTE;
const rounds = numberOption("rounds", 3);
const windowMs = numberOption("seconds", 6) * 1000;
endWithin(LIMIT_MS);

const ground = await startGround({ env: { MAX_MESSAGE_BYTES: String(2 * octets) } });
const { service, dns } = ground;
dns.add({ name: BANK, type: "TXT", data: "v=spf1 -all" });
dns.add({ name: `_dmarc.${BANK}`, type: "TXT", data: "v=DMARC1; p=reject" });
const ledger = await openLedger(join(ground.home, "ledger"));
const load = startLoad(service, { sendsPerSecond: 0, mailsPerSecond: MAILS_PER_SECOND, ledger });

function signature(selector: string): string {
  const tags = `d=${BANK}; s=${selector}; c=relaxed/relaxed; h=from; bh=AA==; b=AA==`;
  return `DKIM-Signature: v=1; a=rsa-sha256; ${tags}\r\n`;
}

type Mail = Pick<LargeMailOptions, "from" | "header" | "line">;

/** A body of one line, each word of which is one letter: relaxed canonicalization looks at each space. */
const FORGED: Mail = {
  from: `x@${BANK}`,
  header: `${signature("a")}${signature("b")}From: ceo@${BANK}\r\n`,
  line: "a ",
};
const HONEST: Mail = {
  from: "ada@client.test",
  header: "From: ada@client.test\r\n",
  line: `${"a".repeat(62)}\r\n`,
};

interface Slice {
  /** Milliseconds. */
  live: number[];
  answers: LargeMailAnswer[];
}

let runs = 0;

/** Brings large mail from a separate process, and watches the live load. */
async function measure(mail: Mail, atOnce: number, ms: number): Promise<Slice> {
  load.forgetLatencies();
  const options: LargeMailOptions = { ...mail, port: service.smtpPort, to: INBOX, octets, atOnce, ms };
  const clients = await startChild(
    [process.execPath, join(import.meta.dir, "support/large-mail.ts"), JSON.stringify(options)],
    { log: join(ground.home, `large-mail-${++runs}`) },
  );
  const lines = (await clients.finished()).trimEnd().split("\n");
  return { live: [...load.latencies.mail], answers: lines.map((line) => JSON.parse(line)) };
}

await Bun.sleep(WARM_MS);
const goOn = isControl() ? standStill(service.pid()) : () => undefined;
const alone = await measure(FORGED, 1, 0);
const [honest, forged]: [Slice[], Slice[]] = [[], []];
for (let round = 0; round < rounds; round++) {
  honest.push(await measure(HONEST, AT_ONCE, windowMs));
  forged.push(await measure(FORGED, AT_ONCE, windowMs));
}
goOn();
const unanswered = await load.stop(STOP_LIMIT_MS);
await ground.stop();

const p95 = (slices: readonly Slice[]): number => median(slices.map(({ live }) => quantile(live, 0.95)));
const answers = [alone, ...forged].flatMap((slice) => slice.answers);
const times = (slices: readonly Slice[]): number[] =>
  slices.flatMap((slice) => slice.answers.map(({ ms }) => ms));
conclude("stall", [
  fact("octets of a forged mail, MiB", octets / MEBIBYTE),
  atMost("one forged mail, ms", Math.max(...times([alone])), ANSWER_MS),
  fact(`${AT_ONCE} at a time, median ms`, median(times(forged)).toFixed(0)),
  allOf("forged mails refused", answers.filter(({ code }) => code === REFUSED).length, answers.length),
  fact("live p95 with honest large mail, ms", p95(honest).toFixed(0)),
  fact("live p95 with forged mail, ms", p95(forged).toFixed(0)),
  atMost("live p95 with forged mail, of that with honest", p95(forged) / p95(honest), FACTOR, "x"),
  none("live mails without an answer at the end", unanswered),
]);
