import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { newFolder, removeFolder } from "../support/folder.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";
import { type KeyAndCert, makeCa, makeCert } from "../support/tls.ts";

// TLS_PORT with certificates in files, which are replaced while clients are connected.

const HOST = `mx.${SERVICE_DOMAIN}`;

let service: TestService;
let authority: KeyAndCert;
let folder: string;
let files: { SMTP_TLS_KEY: string; SMTP_TLS_CERT: string };

beforeAll(async () => {
  folder = newFolder("tls-port");
  files = { SMTP_TLS_KEY: join(folder, "key.pem"), SMTP_TLS_CERT: join(folder, "cert.pem") };
  authority = await makeCa();
  await renew();
  service = await startService({ ...files, TLS_PORT: "0" });
});
afterAll(async () => {
  await service?.stop();
  removeFolder(folder);
});

async function renew(): Promise<void> {
  const { key, cert } = await makeCert([HOST], authority);
  writeFileSync(files.SMTP_TLS_KEY, key);
  writeFileSync(files.SMTP_TLS_CERT, cert);
}

/** A verified connection to TLS_PORT. */
function connected(): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect(
      { host: "127.0.0.1", port: service.app.ports.tls ?? 0, servername: HOST, ca: authority.cert },
      () => resolve(socket),
    );
    socket.on("error", reject);
  });
}

const serialOf = (socket: TLSSocket): string => socket.getPeerCertificate().serialNumber;

/** Resolves with everything that comes until the server closes the connection. */
function whole(socket: TLSSocket): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen = "";
    socket.on("data", (chunk) => {
      seen += chunk.toString();
    });
    socket.on("close", () => resolve(seen));
    socket.on("error", reject);
  });
}

const BODY = JSON.stringify({ name: "over-tls" });

/** Sends the head of a request and half of its body. Returns how to send the rest, which resolves with the answer. */
async function halfSent(): Promise<() => Promise<string>> {
  const socket = await connected();
  const answer = whole(socket);
  const head = [
    "POST /v1/templates/preview HTTP/1.1",
    `Host: ${HOST}`,
    `Authorization: Bearer ${service.projectKey}`,
    "Content-Type: application/json",
    `Content-Length: ${BODY.length}`,
  ];
  const half = BODY.length / 2;
  await new Promise((sent) => socket.write(`${head.join("\r\n")}\r\n\r\n${BODY.slice(0, half)}`, sent));
  return () => {
    socket.write(BODY.slice(half));
    return answer;
  };
}

test("the API answers with TLS, under the certificate of the SMTP listener", async () => {
  const socket = await connected();
  const answer = whole(socket);
  socket.write(`GET /v1/templates HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n`);
  socket.write(`Authorization: Bearer ${service.projectKey}\r\n\r\n`);
  expect(await answer).toStartWith("HTTP/1.1 200 ");
});

test("a renewed certificate is used from the next connection on, and requests in progress are answered", async () => {
  const before = await connected();
  const requests = await Promise.all(Array.from({ length: 10 }, halfSent));
  // The server has read the heads once it answers a request that came after them.
  await fetch(`https://127.0.0.1:${service.app.ports.tls}/livez`, {
    tls: { rejectUnauthorized: false },
  } as BunFetchRequestInit);
  await renew();
  expect(await service.app.reload()).toBe(true);
  const after = await connected();
  // The server before may take one more connection until it has stopped.
  for (let socket = after; serialOf(socket) === serialOf(before); socket = await connected())
    socket.destroy();
  const answers = await Promise.all(requests.map((send) => send()));
  for (const answer of answers) {
    expect(answer).toStartWith("HTTP/1.1 200 ");
    expect(answer.toLowerCase()).toContain("connection: close");
  }
  before.destroy();
});

test("files that cannot be used leave the certificate before in use", async () => {
  const before = serialOf(await connected());
  writeFileSync(files.SMTP_TLS_CERT, "no certificate");
  expect(String(await service.app.reload().catch((error: unknown) => error))).toContain("SMTP_TLS_CERT");
  expect(serialOf(await connected())).toBe(before);
});

test("a port that another program has is an error of the start", async () => {
  const other = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const start = startService({ TLS_PORT: String(other.port) }).then(
    (started) => started.stop().then(() => "started"),
    (error: unknown) => error,
  );
  expect(await start).toMatchObject({ code: "EADDRINUSE", port: other.port });
  other.stop(true);
});
