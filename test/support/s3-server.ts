import { createHash, createHmac } from "node:crypto";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../../src/clock.ts";
import { OUR_HOST } from "./our-host.ts";

/** A fault that the server applies to a request instead of serving it. */
export type Mood =
  | { kind: "serve" }
  | { kind: "refuse"; status: number; code: string }
  /** Takes the request and never answers. */
  | { kind: "hang" }
  /** Answers with exactly these bytes, including the head. */
  | { kind: "say"; bytes: string }
  /** Announces the whole object and closes the connection halfway. */
  | { kind: "cut" };

/** One received request. */
export interface SeenRequest {
  method: string;
  /** Key of the object within its bucket. */
  name: string;
  /** The query of its address: credential and signature. */
  query: URLSearchParams;
  bytes: number;
}

/** A server that speaks the part of S3 needed to store objects, and checks the signature of each presigned URL. */
export interface S3Server {
  endpoint: string;
  objects: Map<string, Uint8Array>;
  seen: SeenRequest[];
  /** Sets the fault for requests of that method, or of all methods if none is named. */
  mood(mood: Mood, method?: string): void;
  /** Sets its clock ahead of the system's by that many milliseconds. */
  ahead(ms: number): void;
  /** Resolves when it has received that many requests of the method since its start. */
  saw(method: string, times: number): Promise<void>;
  /** Closes its port and cuts open requests. */
  stop(): Promise<void>;
  /** Opens the same port again. */
  start(): Promise<void>;
}

export const S3_KEYS = {
  accessKeyId: "AKTEST",
  secretAccessKey: "the-secret-of-the-test",
  region: "eu-test-1",
};
/** Temporary session keys. */
export const S3_SESSION = {
  accessKeyId: "ASIATEST",
  secretAccessKey: "the-secret-of-a-session",
  sessionToken: "token/of+the=session",
  region: S3_KEYS.region,
};
/** Keys whose id contains characters other than letters and digits. */
export const S3_ODD_KEYS = { ...S3_KEYS, accessKeyId: "mail@shop.test/é +1!'()*" };
const KNOWN: readonly { accessKeyId: string; secretAccessKey: string; sessionToken?: string }[] = [
  S3_KEYS,
  S3_SESSION,
  S3_ODD_KEYS,
];
export const S3_BUCKET = "mail";

/** Starts an in-memory object store that checks every signature. It knows the keys above. */
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
    const method = incoming.method ?? "";
    const [encoded = "", search = ""] = (incoming.url ?? "").split("?");
    const request = { method, path: encoded, query: new URLSearchParams(search), headers: incoming.headers };
    const path = decodeURIComponent(encoded);
    const name = path.slice(S3_BUCKET.length + 2);
    note({ method, name, query: request.query, bytes: body.length });
    const mood = moods.get(method) ?? { kind: "serve" };
    if (mood.kind === "hang") return;
    if (mood.kind === "say") return void incoming.socket.end(mood.bytes);
    if (mood.kind === "refuse") return reply(response, refusal(mood.status, mood.code));
    const wrong = faultOf(request, systemClock.now() + ahead);
    if (wrong !== null) return reply(response, refusal(403, wrong));
    if (!path.startsWith(`/${S3_BUCKET}/`)) return reply(response, refusal(404, "NoSuchBucket"));
    reply(response, answer(objects, method, name, body, mood.kind === "cut"));
  };
  let ahead = 0;
  const open = (): Server =>
    createServer((incoming, response) => void serve(incoming, response).catch(() => response.destroy()));
  let server = open();
  await listening(server, 0);
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://${OUR_HOST}:${port}`,
    objects,
    seen,
    mood(mood, method) {
      for (const one of method === undefined ? ["PUT", "GET", "DELETE"] : [method]) moods.set(one, mood);
    },
    ahead(ms) {
      ahead = ms;
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
  return new Promise((resolve) => server.listen(port, OUR_HOST, resolve));
}

/** The server's response. If `cut` is set, sends half of the body under a head that announces all of it. */
interface Reply {
  status: number;
  body: Uint8Array;
  cut?: boolean;
  /** Lists the keys of its objects. */
  etag?: string;
}

function reply(response: ServerResponse, { status, body, cut = false, etag }: Reply): void {
  response.writeHead(status, { "content-length": body.length, ...(etag === undefined ? {} : { etag }) });
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
    // If a request is cut off, nothing is stored, as with the real service.
    if (cut) return refusal(400, "IncompleteBody");
    objects.set(name, body);
    return { status: 200, body: NOTHING, etag: `"${createHash("md5").update(body).digest("hex")}"` };
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

/** The parts of a request that its signature covers. */
interface SignedWords {
  method: string;
  /** As received, percent-encoded. */
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
}

/** Milliseconds that a client's clock may be ahead of S3's. */
const SKEW_MS = 15 * 60_000;
/** Headers that S3 accepts only if they are signed. */
const TO_BE_SIGNED = /^(?:x-amz-.*|content-md5)$/;

/**
 * Checks a request's presigned URL (Signature Version 4 in its query). Returns the error code of S3 if it is
 * invalid.
 */
function faultOf({ method, path, query, headers }: SignedWords, now: number): string | null {
  const of = (name: string) => query.get(`X-Amz-${name}`) ?? "";
  const [, accessKeyId, day = "", region = ""] =
    /^(.+)\/(\d{8})\/([^/]+)\/s3\/aws4_request$/.exec(of("Credential")) ?? [];
  if (of("Algorithm") !== "AWS4-HMAC-SHA256") return "AccessDenied";
  const keys = KNOWN.find((one) => one.accessKeyId === accessKeyId);
  if (keys === undefined) return "InvalidAccessKeyId";
  if (region !== S3_KEYS.region) return "AuthorizationQueryParametersError";
  if (of("Security-Token") !== (keys.sessionToken ?? "")) return "InvalidToken";
  const signedAt = Date.parse(of("Date").replace(/^(....)(..)(..T..)(..)(..Z)$/, "$1-$2-$3:$4:$5"));
  const holdsUntil = signedAt + Number(of("Expires")) * 1000;
  if (!of("Date").startsWith(day) || !(signedAt <= now + SKEW_MS && now < holdsUntil)) return "AccessDenied";
  const names = of("SignedHeaders").split(";");
  if (Object.keys(headers).some((name) => TO_BE_SIGNED.test(name) && !names.includes(name)))
    return "AccessDenied";
  return signatureOf({ method, path, query, headers }, keys.secretAccessKey) === of("Signature")
    ? null
    : "SignatureDoesNotMatch";
}

function signatureOf({ method, path, query, headers }: SignedWords, secret: string): string {
  const names = query.get("X-Amz-SignedHeaders") ?? "";
  const words = [...query].filter(([name]) => name !== "X-Amz-Signature");
  const sorted = words.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).sort();
  const lines = names.split(";").map(
    (name) => `${name}:${headers[name]}
`,
  );
  const canonical = `${method}
${path}
${sorted.join("&")}
${lines.join("")}
${names}
UNSIGNED-PAYLOAD`;
  const time = query.get("X-Amz-Date") ?? "";
  const scope = [time.slice(0, 8), S3_KEYS.region, "s3", "aws4_request"];
  const digest = createHash("sha256").update(canonical).digest("hex");
  const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${secret}`);
  return hmac(
    key,
    `AWS4-HMAC-SHA256
${time}
${scope.join("/")}
${digest}`,
  ).toString("hex");
}

/** All but unreserved characters (RFC 3986 §2.3). */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
