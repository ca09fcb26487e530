import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the server does with a request instead of serving it. */
export type Mood =
  | { kind: "serve" }
  | { kind: "refuse"; status: number; code: string }
  /** Takes the request and never answers. */
  | { kind: "hang" }
  /** Announces the whole object and closes the connection after half of it. */
  | { kind: "cut" };

/** One request as it came in. */
export interface SeenRequest {
  method: string;
  /** Key of the object within its bucket. */
  name: string;
  headers: Headers;
  bytes: number;
}

/** A server that speaks as much S3 as one needs to keep objects, and checks each signature with the secret. */
export interface S3Server {
  endpoint: string;
  objects: Map<string, Uint8Array>;
  seen: SeenRequest[];
  /** What it does with requests of that method; of all methods where none is named. */
  mood(mood: Mood, method?: string): void;
  /** Resolves when it has seen that many requests of the method, from its start. */
  saw(method: string, times: number): Promise<void>;
  /** Closes its port; requests under way are cut. */
  stop(): Promise<void>;
  /** Opens the same port again. */
  start(): Promise<void>;
}

export const S3_KEYS = {
  accessKeyId: "AKTEST",
  secretAccessKey: "the-secret-of-the-test",
  region: "eu-test-1",
};
export const S3_BUCKET = "mail";

export async function startS3(): Promise<S3Server> {
  const objects = new Map<string, Uint8Array>();
  const seen: SeenRequest[] = [];
  const moods = new Map<string, Mood>();
  const waiting: { method: string; times: number; resolve: () => void }[] = [];
  const note = (request: SeenRequest): void => {
    seen.push(request);
    for (const { method, times, resolve } of waiting)
      if (seen.filter((one) => one.method === method).length >= times) resolve();
  };
  const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = new Uint8Array(Buffer.concat(chunks));
    const request = { method: incoming.method ?? "", path: incoming.url ?? "", headers: headersOf(incoming) };
    const path = decodeURIComponent(request.path);
    const name = path.slice(S3_BUCKET.length + 2);
    note({ method: request.method, name, headers: request.headers, bytes: body.length });
    const mood = moods.get(request.method) ?? { kind: "serve" };
    if (mood.kind === "hang") return;
    if (mood.kind === "refuse") return reply(response, refusal(mood.status, mood.code));
    const wrong = faultOf(request, body);
    if (wrong !== null) return reply(response, refusal(403, wrong));
    if (!path.startsWith(`/${S3_BUCKET}/`)) return reply(response, refusal(404, "NoSuchBucket"));
    reply(response, answer(objects, request.method, name, body, mood.kind === "cut"));
  };
  const open = (): Server =>
    createServer((incoming, response) => void serve(incoming, response).catch(() => response.destroy()));
  let server = open();
  await listening(server, 0);
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    objects,
    seen,
    mood(mood, method) {
      for (const one of method === undefined ? ["PUT", "GET", "DELETE"] : [method]) moods.set(one, mood);
    },
    saw: (method, times) =>
      new Promise((resolve) => {
        waiting.push({ method, times, resolve });
        if (seen.filter((one) => one.method === method).length >= times) resolve();
      }),
    async stop() {
      server.close();
      server.closeAllConnections();
    },
    async start() {
      server = open();
      await listening(server, port);
    },
  };
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
}

/** What the server says; with `cut` only half of the body, under a head that tells of all of it. */
interface Reply {
  status: number;
  body: Uint8Array;
  cut?: boolean;
}

function headersOf({ headers }: IncomingMessage): Headers {
  return new Headers(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

function reply(response: ServerResponse, { status, body, cut = false }: Reply): void {
  response.writeHead(status, { "content-length": body.length });
  if (!cut) return void response.end(body);
  response.write(body.slice(0, body.length >> 1), () => response.destroy());
}

function answer(
  objects: Map<string, Uint8Array>,
  method: string,
  name: string,
  body: Uint8Array,
  cut: boolean,
): Reply {
  if (method === "PUT") {
    // One that is cut off has not stored anything, as with the real one.
    if (cut) return refusal(400, "IncompleteBody");
    objects.set(name, body);
    return { status: 200, body: NOTHING };
  }
  if (method === "DELETE") {
    objects.delete(name);
    return { status: 200, body: NOTHING };
  }
  const object = objects.get(name);
  if (object === undefined) return refusal(404, "NoSuchKey");
  return { status: 200, body: object, cut };
}

const NOTHING = new Uint8Array();

function refusal(status: number, code: string): Reply {
  return { status, body: Buffer.from(`<?xml version="1.0"?><Error><Code>${code}</Code></Error>`) };
}

/** What of a request a signature is over. */
interface SignedWords {
  method: string;
  /** As it came, percent-encoded. */
  path: string;
  headers: Headers;
}

/** Signature Version 4 read back from a request's own words; the error code of S3 where it does not hold. */
function faultOf(request: SignedWords, body: Uint8Array): string | null {
  const given =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      request.headers.get("authorization") ?? "",
    );
  if (given === null) return "AccessDenied";
  const [, accessKeyId = "", day = "", region = "", names = "", signature = ""] = given;
  if (accessKeyId !== S3_KEYS.accessKeyId) return "InvalidAccessKeyId";
  if (region !== S3_KEYS.region) return "AuthorizationHeaderMalformed";
  const hash = request.headers.get("x-amz-content-sha256") ?? "";
  if (hash !== createHash("sha256").update(body).digest("hex")) return "XAmzContentSHA256Mismatch";
  const time = request.headers.get("x-amz-date") ?? "";
  if (!time.startsWith(day)) return "AccessDenied";
  const headers = names.split(";").map((name) => `${name}:${request.headers.get(name)?.trim()}\n`);
  const canonical = `${request.method}\n${request.path}\n\n${headers.join("")}\n${names}\n${hash}`;
  const scope = `${day}/${region}/s3/aws4_request`;
  const digest = createHash("sha256").update(canonical).digest("hex");
  const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  let key: string | Buffer = `AWS4${S3_KEYS.secretAccessKey}`;
  for (const step of [day, region, "s3", "aws4_request"]) key = hmac(key, step);
  const expected = hmac(key, `AWS4-HMAC-SHA256\n${time}\n${scope}\n${digest}`).toString("hex");
  return expected === signature ? null : "SignatureDoesNotMatch";
}
