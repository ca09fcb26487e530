import { writeFileSync } from "node:fs";
import { join } from "node:path";
import nodemailer from "nodemailer";

/** A message to send: its octets, every line with CRLF. */
export interface Mail {
  port: number;
  from: string;
  to: readonly string[];
  message: Buffer;
  /** STARTTLS if true; `implicit`: TLS from the start. */
  tls: boolean | "implicit";
  login?: { user: string; password: string };
  /** Folder for files of the program. */
  folder: string;
}

/** A program that delivers mail. */
export interface Program {
  name: string;
  /** Why it cannot run here, or null if it can. */
  missing: string | null;
  starttls: boolean;
  smtpUtf8: boolean;
  /** Text that it adds after every message. */
  adds: "" | "\r\n";
  /** Sends the message. Throws with the program's output if it was refused. */
  send(mail: Mail): Promise<void>;
}

const LONG = "x".repeat(5000);
/** Bodies that are damaged if a program counts dots, lines or octets wrongly. */
export const BODIES: Record<string, string | Buffer> = {
  plain: "Hello\r\n",
  empty: "",
  "one empty line": "\r\n",
  dots: ".\r\n..\r\n...\r\n.x\r\n. \r\nx.\r\n.\r\n",
  "a dot last": "x\r\n.\r\n",
  "empty lines last": "x\r\n\r\n\r\n",
  "spaces and tabs": " x \r\n\t\r\n  \r\n",
  "UTF-8": Buffer.from("Grüße, 你好, 🎉\r\n"),
  "octets beyond ASCII": Buffer.from("\x80\xa0\xe4\xff\r\n", "latin1"),
  "long lines": `${LONG}\r\n.${LONG}\r\n${LONG}.\r\n`,
  "a mail within": "From MAIL\r\nQUIT\r\nMAIL FROM:<evil@client.test>\r\nDATA\r\n",
  "5 MB": `${"0123456789".repeat(7)}.\r\n.`.repeat(70_000).concat("\r\n"),
};

/** Names a program in a test, with the reason if it is skipped. */
export function title({ name, missing }: Program): string {
  return missing === null ? name : `${name} (skipped: ${missing})`;
}

const SMTP_SOURCE = "/usr/sbin/smtp-source";

async function run(command: readonly string[], stdin: Uint8Array | "ignore" = "ignore"): Promise<void> {
  const child = Bun.spawn([...command], { stdin, stdout: "pipe", stderr: "pipe" });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`${command[0]} ended with ${child.exitCode}: ${out}${err}`);
}

function without(program: string): string | null {
  return Bun.which(program) === null ? `${program} is not installed` : null;
}

/** The message with bare LF, as in files on Unix. */
function unixText(message: Buffer): Buffer {
  return Buffer.from(message.toString("latin1").replaceAll("\r\n", "\n"), "latin1");
}

function file({ folder }: Mail, octets: Buffer): string {
  const path = join(folder, `${Bun.randomUUIDv7()}.eml`);
  writeFileSync(path, octets);
  return path;
}

const PYTHON = `
import smtplib, ssl, sys
port, tls, user, password, sender, *to = sys.argv[1:]
options = ["SMTPUTF8"] if any(ord(c) > 127 for c in sender) else []
context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
if tls == "implicit":
    smtp = smtplib.SMTP_SSL("127.0.0.1", int(port), local_hostname="client.test", context=context)
else:
    smtp = smtplib.SMTP("127.0.0.1", int(port), local_hostname="client.test")
with smtp:
    if tls == "true":
        smtp.starttls(context=context)
    if password:
        smtp.login(user, password)
    refused = smtp.sendmail(sender, to, sys.stdin.buffer.read(), mail_options=options)
    sys.exit(1 if refused else 0)
`;

function python(name: string, program: string): Program {
  return {
    name,
    missing: without(program),
    starttls: true,
    smtpUtf8: true,
    adds: "",
    send: ({ port, tls, login, from, to, message }) => {
      const { user, password } = login ?? { user: "", password: "" };
      return run([program, "-c", PYTHON, String(port), String(tls), user, password, from, ...to], message);
    },
  };
}

/** swaks does TLS with a Perl module that is packaged separately. */
function swaksTls(): boolean {
  return Bun.which("perl") !== null && Bun.spawnSync(["perl", "-MNet::SSLeay", "-e", "1"]).exitCode === 0;
}

export const PROGRAMS: readonly Program[] = [
  {
    name: "swaks",
    missing: without("swaks"),
    starttls: swaksTls(),
    smtpUtf8: false,
    adds: "",
    send: (mail) => {
      const { port, tls, login, from, to, message } = mail;
      // By default swaks removes a final dot and substitutes tokens, so it gets the message in its wire form.
      const wire = Buffer.from(`${message.toString("latin1").replace(/^\./gm, "..")}.`, "latin1");
      const data = ["--suppress-data", "--no-data-fixup", "--data", `@${file(mail, wire)}`];
      const ends = ["--server", `127.0.0.1:${port}`, "--helo", "client.test", "-f", from, "-t", to.join(",")];
      const safe = tls === "implicit" ? ["--tls-on-connect"] : tls ? ["--tls"] : [];
      const known =
        login === undefined ? [] : ["--auth", "--auth-user", login.user, "--auth-password", login.password];
      return run(["swaks", ...ends, ...data, ...safe, ...known]);
    },
  },
  {
    name: "smtp-source",
    missing: without(SMTP_SOURCE),
    starttls: false,
    smtpUtf8: false,
    adds: "\r\n",
    send: async (mail) => {
      // It takes one recipient, or many that it numbers itself.
      const path = file(mail, unixText(mail.message));
      for (const to of mail.to)
        await run([
          SMTP_SOURCE,
          "-M",
          "client.test",
          "-F",
          path,
          "-f",
          mail.from,
          "-t",
          to,
          `127.0.0.1:${mail.port}`,
        ]);
    },
  },
  {
    name: "msmtp",
    missing: without("msmtp"),
    starttls: true,
    smtpUtf8: false,
    adds: "",
    send: ({ port, tls, login, from, to, message }) => {
      const ends = [
        "--host=127.0.0.1",
        `--port=${port}`,
        "--domain=client.test",
        `--from=${from}`,
        ...(login === undefined
          ? ["--auth=off"]
          : ["--auth=login", `--user=${login.user}`, `--passwordeval=echo ${login.password}`]),
      ];
      const headers = ["--set-from-header=off", "--set-date-header=off"];
      const starttls = `--tls-starttls=${tls === "implicit" ? "off" : "on"}`;
      const safe = tls ? ["--tls=on", starttls, "--tls-certcheck=off"] : ["--tls=off"];
      return run(["msmtp", ...ends, ...headers, ...safe, "--", ...to], unixText(message));
    },
  },
  {
    name: "curl",
    missing: without("curl"),
    starttls: true,
    smtpUtf8: true,
    adds: "",
    send: (mail) => {
      const { port, tls, login, from, to, message } = mail;
      const ends = [
        "--url",
        `${tls === "implicit" ? "smtps" : "smtp"}://127.0.0.1:${port}/client.test`,
        "--mail-from",
        from,
      ];
      const recipients = to.flatMap((one) => ["--mail-rcpt", one]);
      const safe = tls ? ["--ssl-reqd", "--insecure"] : [];
      const known = login === undefined ? [] : ["--user", `${login.user}:${login.password}`];
      return run([
        "curl",
        "-sS",
        ...ends,
        ...recipients,
        ...safe,
        ...known,
        "--upload-file",
        file(mail, message),
      ]);
    },
  },
  python("the system's python", "/usr/bin/python3"),
  python("the path's python", "python3"),
  {
    name: "nodemailer",
    missing: null,
    starttls: true,
    smtpUtf8: true,
    adds: "",
    send: async ({ port, tls, login, from, to, message }) => {
      const safe = tls ? { requireTLS: true, tls: { rejectUnauthorized: false } } : { ignoreTLS: true };
      const transport = nodemailer.createTransport({
        host: "127.0.0.1",
        port,
        name: "client.test",
        secure: tls === "implicit",
        ...safe,
        ...(login === undefined ? {} : { auth: { user: login.user, pass: login.password } }),
      });
      await transport.sendMail({ envelope: { from, to: [...to] }, raw: message });
      transport.close();
    },
  },
];
