import { type Clock, within } from "../core/clock.ts";
import { type AwsCredentials, signAws } from "./aws-signature.ts";
import { reasonOf } from "../core/errors.ts";

export interface ObjectStoreDeps {
  clock: Clock;
  /** Once aborted, requests under way fail, and so do all later ones. */
  ending?: AbortSignal;
}

/** Where objects lie: a bucket of a server that speaks S3. */
export interface ObjectStoreOptions extends AwsCredentials {
  /** `http://` or `https://`; the bucket follows in the path. */
  endpoint: string;
  bucket: string;
  /** Time a request has, with its body and its answer (milliseconds). */
  timeoutMs?: number;
}

/** Files by name, in a place that may be out of reach at any time. All of it throws `ObjectStoreError`. */
export interface ObjectStore {
  /** Resolves once the server has the bytes for good; in the place of those that had the name before. */
  put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** The bytes of that name; more than `maxBytes` are trouble. */
  get(name: string, maxBytes: number): Promise<Uint8Array>;
  /** One that is not there is as good as removed. */
  remove(name: string): Promise<void>;
}

/** An object store that did not do what it was asked to. The message names the object and the reason, and no secret. */
export class ObjectStoreError extends Error {
  /** HTTP status; null where there was no answer, or not all of it. */
  readonly status: number | null;
  /** For those who sort errors by their code, as they do the database's. */
  readonly code = "OBJECT_STORE";

  constructor(message: string, status: number | null) {
    super(message);
    this.name = "ObjectStoreError";
    this.status = status;
  }
}

/** Time of a request: 25 MB at seven megabits a second. */
export const OBJECT_TIMEOUT_MS = 30_000;
/** Bytes of a refusal that are read, for the reason in it. */
const MAX_REFUSAL_BYTES = 4096;
const NOT_FOUND = 404;

/**
 * A bucket over plain signed requests. Not Bun's S3 client: it takes a session token from the environment whatever it is
 * given, has no bound of time, and leaves what is sent out of the signature.
 */
export function openObjectStore(deps: ObjectStoreDeps, options: ObjectStoreOptions): ObjectStore {
  return {
    async put(name, bytes) {
      await exchange(deps, options, { method: "PUT", name, body: bytes, maxBytes: MAX_REFUSAL_BYTES });
    },
    async get(name, maxBytes) {
      const { body } = await exchange(deps, options, { method: "GET", name, body: NOTHING, maxBytes });
      return body;
    },
    async remove(name) {
      const request = { method: "DELETE", name, body: NOTHING, maxBytes: MAX_REFUSAL_BYTES };
      await exchange(deps, options, request, NOT_FOUND);
    },
  };
}

/** Octets of a probe. */
const PROBE_OCTETS = 64;

/**
 * Whether the store keeps what it is given: puts an object of that name, reads it and removes it.
 * @throws ObjectStoreError that says what it did not do
 */
export async function checkObjectStore(store: ObjectStore, name: string): Promise<void> {
  const probe = crypto.getRandomValues(new Uint8Array(PROBE_OCTETS));
  await store.put(name, probe);
  const read = await store.get(name, PROBE_OCTETS).catch(async (error: unknown) => {
    await store.remove(name).catch(() => undefined);
    throw error;
  });
  await store.remove(name);
  if (Buffer.compare(read, probe) !== 0)
    throw new ObjectStoreError(`GET ${name}: other bytes than were put`, null);
}

const NOTHING = new Uint8Array();

interface Request {
  method: string;
  name: string;
  body: Uint8Array<ArrayBuffer>;
  maxBytes: number;
}

/** One request with its whole answer. @param fine a status that is as good as success */
async function exchange(
  { clock, ending }: ObjectStoreDeps,
  options: ObjectStoreOptions,
  request: Request,
  fine?: number,
): Promise<{ body: Uint8Array }> {
  const { method, name } = request;
  const failed = (reason: string, status: number | null = null) =>
    new ObjectStoreError(`${method} ${name}: ${reason}`, status);
  const aborter = new AbortController();
  const signal = ending === undefined ? aborter.signal : AbortSignal.any([aborter.signal, ending]);
  const asking = ask(clock, options, request, signal);
  const answer = await within(clock, options.timeoutMs ?? OBJECT_TIMEOUT_MS, asking, "late" as const).catch(
    (error: unknown) => {
      throw failed(reasonOf(error));
    },
  );
  if (answer === "late") {
    aborter.abort();
    asking.catch(() => undefined);
    throw failed("timeout");
  }
  const { status, body } = answer;
  if (status < 200 || (status > 299 && status !== fine)) throw failed(refusalOf(status, body), status);
  if (body === null) throw failed(`longer than ${request.maxBytes} bytes`, status);
  return { body };
}

/** Bun's own options of a request, which its types lack in this form. */
interface DirectRequest extends BunFetchRequestInit {
  /** Names in the environment no proxy: what is kept there is for this server alone. */
  proxy: never;
}

async function ask(
  clock: Clock,
  { endpoint, bucket, ...credentials }: ObjectStoreOptions,
  { method, name, body, maxBytes }: Request,
  signal: AbortSignal,
): Promise<{ status: number; body: Uint8Array | null }> {
  const base = new URL(endpoint);
  const path = `${base.pathname.replace(/\/$/, "")}/${encodePath(bucket)}/${encodePath(name)}`;
  const bodyHash = await sha256Hex(body);
  const headers = signAws(credentials, { method, host: base.host, path, bodyHash, now: clock.now() });
  const response = await fetch(`${base.origin}${path}`, {
    method,
    headers: { ...headers, "content-type": "application/octet-stream" },
    ...(method === "PUT" ? { body } : {}),
    signal,
    redirect: "manual",
    decompress: false,
    proxy: false,
  } as unknown as DirectRequest);
  return { status: response.status, body: await readAll(response, maxBytes) };
}

/** The body, as long as its head said; null where it is longer than allowed. */
async function readAll(response: Response, maxBytes: number): Promise<Uint8Array | null> {
  const told = response.headers.get("content-length");
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > Math.max(maxBytes, MAX_REFUSAL_BYTES)) return null;
    chunks.push(chunk);
  }
  if (told !== null && Number(told) !== size) throw new Error("cut short");
  return Buffer.concat(chunks, size);
}

/** On the thread pool: 25 MB take 50 ms. */
async function sha256Hex(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return Buffer.from(await crypto.subtle.digest("SHA-256", bytes)).toString("hex");
}

/** As S3 encodes a path before it signs it: all but unreserved characters (RFC 3986 §2.3) and slashes. */
function encodePath(path: string): string {
  return encodeURIComponent(path)
    .replaceAll("%2F", "/")
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** `403 SignatureDoesNotMatch`: S3 says the reason in the XML of its answer. */
function refusalOf(status: number, body: Uint8Array | null): string {
  const code = /<Code>([\w.-]{1,64})<\/Code>/.exec(Buffer.from(body ?? NOTHING).toString("latin1"))?.[1];
  return code === undefined ? String(status) : `${status} ${code}`;
}
