import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../../src/core/time/units.ts";
import { SELF_SIGNED_DAYS, selfSignedCertificate } from "../../src/smtp/listener/self-signed.ts";
import { newFolder } from "../support/folder.ts";
import { type ServiceProcess, serviceProcess } from "../support/process.ts";
import { type KeyAndCert, makeCert } from "../support/tls.ts";
import { Client, startServer } from "./server-harness.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const openssl = Bun.which("openssl");
/** OpenSSL offers the versions below 1.2 only at this security level. */
const OLD = ["-cipher", "DEFAULT@SECLEVEL=0"];

/** Does the handshake with openssl, then disconnects. Returns all of its output. */
async function handshake(port: number, ...flags: string[]): Promise<string> {
  const to = ["-starttls", "smtp", "-connect", `127.0.0.1:${port}`];
  const child = Bun.spawn(["openssl", "s_client", ...to, ...flags], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  await child.exited;
  return out + err;
}

for (const [flag, version] of [
  ["-tls1_2", "TLSv1.2"],
  ["-tls1_3", "TLSv1.3"],
] as const)
  test.skipIf(openssl === null)(`${version} is accepted`, async () => {
    await using server = await startServer();
    expect(await handshake(server.port, flag)).toContain(`New, ${version}, Cipher is`);
  });

for (const flag of ["-tls1", "-tls1_1"])
  test.skipIf(openssl === null)(`${flag} is refused by us, RFC 8996`, async () => {
    await using server = await startServer();
    const said = await handshake(server.port, flag, ...OLD);
    expect(said).toContain("alert protocol version");
    expect(said).toContain("New, (NONE), Cipher is (NONE)");
  });

// RFC 9325 §4.1: no anonymous ciphers and no null encryption. OpenSSL still offers both when asked.
for (const ciphers of ["aNULL", "eNULL"])
  test.skipIf(openssl === null)(`${ciphers} is refused by us`, async () => {
    await using server = await startServer();
    const said = await handshake(server.port, "-tls1_2", "-cipher", `${ciphers}:@SECLEVEL=0`);
    expect(said).toContain("alert handshake failure");
    expect(said).toContain("New, (NONE), Cipher is (NONE)");
  });

test("a replaced certificate is used from the next handshake on, and sessions under the old one continue", async () => {
  await using server = await startServer();
  const before = await secured(server.port);
  const cert = await makeCert(["new.test"]);
  server.listener.setCertificate(cert);
  const after = await secured(server.port);
  expect(after.name).toBe("new.test");
  expect(before.name).not.toBe("new.test");
  for (const { client } of [before, after]) {
    await client.startMessage();
    expect(await client.say("x\r\n.")).toStartWith("250 ");
  }
});

async function secured(port: number): Promise<{ client: Client; name: string }> {
  const client = await Client.connect(port);
  await client.say("EHLO x");
  await client.say("STARTTLS");
  const socket = await client.secure();
  return { client, name: String(socket.getPeerCertificate().subject.CN) };
}

let folder = "";
let process: ServiceProcess;

/** Writes the certificate files of the process. */
function write({ key, cert }: KeyAndCert): void {
  writeFileSync(join(folder, "key.pem"), key);
  writeFileSync(join(folder, "cert.pem"), cert);
}

/** Sends SIGHUP and waits until the process has logged the line once more. */
async function reload(line: string): Promise<void> {
  const count = () => {
    const { stdout, stderr } = process.output();
    return (stdout + stderr).split(line).length;
  };
  const before = count();
  process.reload();
  // The log is the only signal from the process.
  while (count() === before) await Bun.sleep(5);
}

beforeAll(() => {
  folder = newFolder("reload");
  process = serviceProcess({
    SMTP_TLS_KEY: join(folder, "key.pem"),
    SMTP_TLS_CERT: join(folder, "cert.pem"),
    DELIVERY: "capture",
  });
});
afterAll(async () => {
  await process.remove();
});

test("SIGHUP makes a running service reload its certificate; unusable files leave the old one in use", async () => {
  const [first, second] = [await makeCert(["first.test"]), await makeCert(["second.test"])];
  write(first);
  await process.start();
  const old = await secured(process.smtpPort);
  expect(old.name).toBe("first.test");

  write(second);
  expect((await secured(process.smtpPort)).name).toBe("first.test");
  await reload("certificate reloaded");
  expect((await secured(process.smtpPort)).name).toBe("second.test");
  expect(await old.client.say("EHLO x")).toStartWith("250-");

  const broken: [name: string, files: KeyAndCert][] = [
    ["a key of another certificate", { key: first.key, cert: second.cert }],
    ["half of a certificate", { key: second.key, cert: second.cert.slice(0, 400) }],
    ["no certificate", { key: second.key, cert: "" }],
    [
      "a chain whose second part is broken",
      {
        key: second.key,
        cert: `${second.cert}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
      },
    ],
  ];
  for (const [name, files] of broken) {
    write(files);
    await reload("the old certificate stays in use");
    expect((await secured(process.smtpPort)).name, name).toBe("second.test");
  }
  write(first);
  await reload("certificate reloaded");
  expect((await secured(process.smtpPort)).name).toBe("first.test");
  write(await selfSignedCertificate("past.test", Date.now() - (SELF_SIGNED_DAYS + 1) * DAY_MS));
  await reload("the certificate has expired");
  expect(await old.client.say("QUIT")).toStartWith("221 ");
});
