import { expect, test } from "bun:test";
import tls from "node:tls";
import { createFailedLogins, MAX_FAILED_LOGINS } from "../../src/smtp/listener/failed-logins.ts";
import type { MailHandler } from "../../src/smtp/session/envelope.ts";
import { createListener, type ListenerOptions } from "../../src/smtp/listener/listener.ts";
import { log } from "../../src/log.ts";
import { REPLIES } from "../../src/smtp/session/reply.ts";
import { selfSignedCertificate } from "../../src/smtp/listener/self-signed.ts";
import { manualClock } from "../support/manual-clock.ts";
import { Client, HOSTNAME, TAKEN } from "./server-harness.ts";

const RULES = { required: true, inPlainText: true, recipient: () => null };

/** A listener for submissions whose handler accepts the password `right`. */
async function startSubmission(options: Partial<ListenerOptions> = {}) {
  const clock = manualClock();
  const handler: MailHandler = {
    recipient: async () => null,
    message: async () => TAKEN,
    login: async ({ password }) => (password === "right" ? { identity: "1" } : REPLIES.wrongLogin),
  };
  const certificate = await selfSignedCertificate(HOSTNAME, clock.now());
  const listener = createListener(
    { clock, handler, log: log("smtp"), failedLogins: createFailedLogins(clock) },
    {
      host: "127.0.0.1",
      port: 0,
      hostname: HOSTNAME,
      maxMessageBytes: 1024,
      maxRecipients: 10,
      maxConnections: 10,
      maxConnectionsPerIp: 10,
      proxies: [],
      tls: certificate,
      logins: () => RULES,
      ...options,
    },
  );
  const { port } = await listener.start();
  const stop = async () => {
    const stopped = listener.stop(0);
    clock.advance(0);
    await stopped;
  };
  return { port, clock, listener, [Symbol.asyncDispose]: stop };
}

function plain(password: string): string {
  return `AUTH PLAIN ${Buffer.from(`\0ana\0${password}`).toString("base64")}`;
}

test("after twenty failed logins in a minute an address is answered 421, also in a session it has open", async () => {
  await using server = await startSubmission();
  const patient = await Client.connect(server.port);
  await patient.say("EHLO x");
  for (let failed = 0; failed < MAX_FAILED_LOGINS; ) {
    const client = await Client.connect(server.port);
    await client.say("EHLO x");
    for (let tries = 0; tries < 4; tries++, failed++)
      expect(await client.say(plain("wrong"))).toStartWith("535 5.7.8");
    client.destroy();
  }
  const turnedAway = await Client.connect(server.port, false);
  expect(await turnedAway.reply()).toStartWith("421 4.7.0");
  expect(await patient.say(plain("right"))).toStartWith("421 4.7.0");
  server.clock.advance(60_000);
  const later = await Client.connect(server.port);
  await later.say("EHLO x");
  expect(await later.say(plain("right"))).toStartWith("235 2.7.0");
});

function secureLine(port: number): Promise<{ text: string; fingerprint: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ text: string; fingerprint: string }>();
  const socket = tls.connect({ host: "127.0.0.1", port, rejectUnauthorized: false });
  const send = [`EHLO x\r\n`, `${plain("right")}\r\n`, "QUIT\r\n"];
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString();
    const next = text.endsWith("\r\n") ? send.shift() : undefined;
    if (next !== undefined) socket.write(next);
  });
  const fingerprint = () => socket.getPeerX509Certificate()?.fingerprint256 ?? "";
  let seen = "";
  socket.on("secureConnect", () => {
    seen = fingerprint();
  });
  socket.on("end", () => resolve({ text, fingerprint: seen })).on("error", reject);
  return promise;
}

test("a listener with implicit TLS greets under TLS, and takes a new certificate without a restart", async () => {
  await using server = await startSubmission({
    implicitTls: true,
    logins: () => ({ ...RULES, inPlainText: false }),
  });
  const before = await secureLine(server.port);
  expect(before.text).toMatch(/^220 .*\r\n250-[\s\S]*AUTH PLAIN LOGIN\r\n235 2\.7\.0 .*\r\n221 /);
  server.listener.setCertificate(await selfSignedCertificate(HOSTNAME, server.clock.now()));
  const after = await secureLine(server.port);
  expect(after.text).toBe(before.text);
  expect(after.fingerprint).not.toBe(before.fingerprint);
});

test("a client that speaks in plain text to a listener with implicit TLS learns nothing", async () => {
  await using server = await startSubmission({ implicitTls: true });
  const client = await Client.connect(server.port, false);
  client.send("EHLO x\r\n");
  expect(await client.rest()).not.toMatch(/\d{3}[ -]/);
});
