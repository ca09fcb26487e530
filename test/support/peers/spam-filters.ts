// Runs messages through SpamAssassin and rspamd on this machine. Neither asks anything outside it.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { answers } from "./peer.ts";

/** The rules that a filter applied to a message, with their points. */
export type Rules = Readonly<Record<string, number>>;

/** A message as an MX host got it. */
export interface Letter {
  raw: Buffer;
  mailFrom: string;
  rcptTo: string;
}

/** The client that delivered every message. */
export const CLIENT = { ip: "203.0.112.5", helo: "mx.post.example.net" };

const PERL = `use Mail::SpamAssassin;
my $sa = Mail::SpamAssassin->new({local_tests_only => 1, dont_copy_prefs => 1, userprefs_filename => "/dev/null"});
for my $file (@ARGV) {
  open my $in, "<", $file or die; local $/; my $mail = $sa->parse(<$in>);
  my $status = $sa->check($mail);
  print join(",", map { "$_=" . ($status->{conf}{scores}{$_} // 1) } split /,/, $status->get_names_of_tests_hit()), "\\n";
  $status->finish(); $mail->finish();
}`;

/** Scores messages by SpamAssassin's local rules. */
export async function spamAssassin(folder: string, letters: readonly Letter[]): Promise<Rules[]> {
  const files = letters.map(({ raw, mailFrom, rcptTo }, at) => {
    const path = join(folder, `${at}.eml`);
    const trace = `Return-Path: <${mailFrom}>\r\nReceived: from ${CLIENT.helo} (${CLIENT.helo} [${CLIENT.ip}])\r\n\tby mx.example.com with ESMTPS id 1 for <${rcptTo}>; ${new Date().toUTCString()}\r\n`;
    writeFileSync(path, Buffer.concat([Buffer.from(trace), raw]));
    return path;
  });
  const run = Bun.spawn(["perl", "-e", PERL, ...files], { stdout: "pipe", stderr: "inherit" });
  const out = await new Response(run.stdout).text();
  if ((await run.exited) !== 0) throw new Error("SpamAssassin failed");
  return out
    .split("\n")
    .slice(0, letters.length)
    .map((line) => Object.fromEntries(line.split(",").flatMap(ruleOf)));
}

function ruleOf(text: string): [string, number][] {
  const [name = "", points = "0"] = text.split("=");
  return name === "" || Number(points) === 0 ? [] : [[name, Number(points)]];
}

/** A started rspamd. */
export interface Rspamd {
  /** URL of its worker. */
  url: string;
  score(letter: Letter): Promise<Rules>;
  stop(): Promise<void>;
}

/** Public suffixes of the names in our messages. The whole list takes ten seconds to compile. */
const SUFFIXES = "com\nnet\norg\n";

/** Starts rspamd with Debian's rules. It asks the given name server alone. */
export async function startRspamd(
  folder: string,
  port: number,
  dns: { ip: string; port: number },
): Promise<Rspamd> {
  const local = join(folder, "local.d");
  writeFileSync(join(folder, "suffixes.dat"), SUFFIXES);
  mkdirSync(local, { recursive: true });
  const files: Readonly<Record<string, string>> = {
    "options.inc": `dns { nameserver = ["${dns.ip}:${dns.port}"]; timeout = 1s; retransmits = 2; }\nlocal_addrs = [];\nurl_tld = "${folder}/suffixes.dat";\n`,
    "worker-normal.inc": `bind_socket = "127.0.0.1:${port}";\ncount = 1;\n`,
    "worker-controller.inc": "enabled = false;\n",
    "worker-proxy.inc": "enabled = false;\n",
    "worker-fuzzy.inc": "enabled = false;\n",
    "logging.inc": `type = "file";\nfilename = "${folder}/rspamd.log";\n`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(local, name), text);
  for (const module of ["fuzzy_check", "history_redis", "phishing", "asn", "rbl"])
    writeFileSync(join(local, `${module}.conf`), "enabled = false;\n");
  const variables = ["DBDIR", "RUNDIR", "LOGDIR", "LOCAL_CONFDIR"].map((name) => `--var=${name}=${folder}`);
  const run = Bun.spawn(["rspamd", "-f", "-i", "-c", "/etc/rspamd/rspamd.conf", ...variables], {
    stdout: "ignore",
    stderr: "ignore",
  });
  const url = `http://127.0.0.1:${port}`;
  if (!(await answers("127.0.0.1", port, run)))
    throw new Error(`rspamd did not start: see ${folder}/rspamd.log`);
  return {
    url,
    async score({ raw, mailFrom, rcptTo }) {
      const headers = {
        IP: CLIENT.ip,
        Helo: CLIENT.helo,
        Hostname: CLIENT.helo,
        From: mailFrom,
        Rcpt: rcptTo,
      };
      const answer = await fetch(`${url}/checkv2`, { method: "POST", body: raw, headers });
      const { symbols } = (await answer.json()) as { symbols: Record<string, { score: number }> };
      return Object.fromEntries(
        Object.entries(symbols).flatMap(([name, { score }]): [string, number][] =>
          score === 0 ? [] : [[name, score]],
        ),
      );
    },
    async stop() {
      run.kill();
      await run.exited;
    },
  };
}
