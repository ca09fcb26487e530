import { expect, test } from "bun:test";
import { startServer } from "./server-harness.ts";

const SMTP_SOURCE = "/usr/sbin/smtp-source";

async function run(...command: string[]): Promise<{ code: number; output: string }> {
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, output: out + err };
}

function has(path: string): boolean {
  return Bun.spawnSync(["test", "-x", path]).exitCode === 0;
}

const swaks = Bun.which("swaks");
/** swaks does TLS with a Perl module that is packaged separately. */
const swaksTls = swaks !== null && Bun.spawnSync(["perl", "-MNet::SSLeay", "-e", "1"]).exitCode === 0;
const openssl = Bun.which("openssl");

test.skipIf(swaks === null)("swaks delivers a message", async () => {
  await using server = await startServer();
  const to = `127.0.0.1:${server.port}`;
  const { code, output } = await run(
    "swaks",
    "--server",
    to,
    "-f",
    "a@b.example",
    "-t",
    "c@d.example,e@f.example",
    "--body",
    ".dot",
  );
  expect(code, output).toBe(0);
  expect(server.taken[0]?.envelope.rcptTo).toEqual(["c@d.example", "e@f.example"]);
  expect(server.taken[0]?.raw.toString()).toContain("\r\n.dot\r\n");
});

test.skipIf(!swaksTls)("swaks delivers a message under TLS (skipped without Net::SSLeay)", async () => {
  await using server = await startServer();
  const to = `127.0.0.1:${server.port}`;
  const { code, output } = await run(
    "swaks",
    "--server",
    to,
    "--tls",
    "-f",
    "a@b.example",
    "-t",
    "c@d.example",
  );
  expect(code, output).toBe(0);
  expect(server.taken[0]?.envelope.tls).toStartWith("TLSv1.");
});

for (const version of ["tls1_2", "tls1_3"])
  test.skipIf(openssl === null)(`openssl s_client delivers a message under ${version}`, async () => {
    await using server = await startServer();
    const child = Bun.spawn(
      [
        "openssl",
        "s_client",
        "-quiet",
        "-crlf",
        `-${version}`,
        "-starttls",
        "smtp",
        "-connect",
        `127.0.0.1:${server.port}`,
      ],
      { stdin: "pipe", stdout: "pipe", stderr: "ignore" },
    );
    child.stdin.write("EHLO x\nMAIL FROM:<a@b.example>\nRCPT TO:<c@d.example>\nDATA\nhello\n.\nquit\n");
    await child.stdin.flush();
    const output = await new Response(child.stdout).text();
    child.stdin.end();
    expect(output).toContain("250 2.0.0 Taken\r\n221 2.0.0 Goodbye\r\n");
    expect(server.taken[0]?.raw.toString()).toBe("hello\r\n");
    expect(server.taken[0]?.envelope.tls).toBe(version === "tls1_2" ? "TLSv1.2" : "TLSv1.3");
  });

for (const [name, ...flags] of [["a session each"], ["sessions kept", "-d"]])
  test.skipIf(!has(SMTP_SOURCE))(
    `smtp-source delivers 200 messages over ten connections, ${name}`,
    async () => {
      await using server = await startServer();
      const to = `127.0.0.1:${server.port}`;
      const counts = ["-s", "10", "-m", "200", "-l", "4096"];
      const { code, output } = await run(
        SMTP_SOURCE,
        ...counts,
        ...flags,
        "-f",
        "a@b.example",
        "-t",
        "c@d.example",
        to,
      );
      expect(code, output).toBe(0);
      expect(server.taken.length).toBe(200);
      expect(new Set(server.taken.map(({ raw }) => raw.length)).size).toBeLessThan(10); // Names and dates differ in length.
      expect(
        server.taken.every(({ raw }) => raw.length >= 4096 && raw.subarray(-2).toString() === "\r\n"),
      ).toBe(true);
    },
  );
