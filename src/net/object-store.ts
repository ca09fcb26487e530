import { type Clock, within } from "../core/time/clock.ts";
import { reasonOf } from "../core/errors.ts";

export interface ObjectStoreDeps {
  clock: Clock;
  /** If aborted, current and later requests fail. */
  ending?: AbortSignal;
}

/** A bucket of an S3 server, and the access key. */
export interface ObjectStoreOptions {
  /** `http://` or `https://`; the bucket is the first part of the path. */
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** Session token of temporary keys. */
  sessionToken?: string;
  /** Time limit of a request with body and response, in milliseconds. */
  timeoutMs?: number;
}

/** Files by name in remote storage, which may be unreachable at any time. All methods throw `ObjectStoreError`. */
export interface ObjectStore {
  /** Resolves when the server has stored the bytes. Replaces an object of the same name. */
  put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Returns the bytes of an object. Throws if there are more than `maxBytes`. */
  get(name: string, maxBytes: number): Promise<Uint8Array>;
  /** Removes an object. Succeeds if it does not exist. */
  remove(name: string): Promise<void>;
}

/** Error of the object store. The message has the object's name and the reason, but no secret. */
export class ObjectStoreError extends Error {
  /** HTTP status; null if there was no complete response. */
  readonly status: number | null;
  /** Lets callers classify errors by `code`, as they do for the database's. */
  readonly code = "OBJECT_STORE";

  constructor(message: string, status: number | null) {
    super(message);
    this.name = "ObjectStoreError";
    this.status = status;
  }
}

/** Time limit of a request: 25 MB at 7 Mbit/s. */
export const OBJECT_TIMEOUT_MS = 30_000;
/** Maximum bytes read of an error response. */
const MAX_REFUSAL_BYTES = 4096;
/** Seconds a signature is valid. S3 allows clocks to differ by this much. */
const SIGNED_SECONDS = 15 * 60;
const OK = 200;
const NOT_FOUND = 404;

/**
 * Opens a bucket. Bun's S3 client signs the requests, and `fetch` sends them: the client's own requests have no limits
 * of time and size, and obey `HTTP_PROXY`. If `sessionToken` is undefined, the client uses S3_SESSION_TOKEN or
 * AWS_SESSION_TOKEN of the environment.
 */
export function openObjectStore(deps: ObjectStoreDeps, options: ObjectStoreOptions): ObjectStore {
  const { timeoutMs = OBJECT_TIMEOUT_MS, accessKeyId, ...place } = options;
  // Bun puts the id into the query without encoding it.
  const signer = new Bun.S3Client({ ...place, accessKeyId: encoded(accessKeyId) });
  const asked = (request: Request) => ask(deps, signer, timeoutMs, request);
  return {
    async put(name, body) {
      await asked({ method: "PUT", name, body, maxBytes: MAX_REFUSAL_BYTES, isDone: isKept });
    },
    get: async (name, maxBytes) => {
      const isDone = ({ status }: Answer) => status === OK;
      return (await asked({ method: "GET", name, maxBytes, isDone })).body;
    },
    async remove(name) {
      const isDone = (answer: Answer) => isSuccess(answer) || answer.status === NOT_FOUND;
      await asked({ method: "DELETE", name, maxBytes: MAX_REFUSAL_BYTES, isDone });
    },
  };
}

function isSuccess({ status }: Answer): boolean {
  return status >= 200 && status <= 299;
}

/**
 * Returns true if the server has stored the bytes. S3 returns an `ETag`. A web server that answers every URL with a
 * page does not, and after a put the bytes may exist nowhere else.
 */
function isKept(answer: Answer): boolean {
  return isSuccess(answer) && answer.etag !== null;
}

const PROBE_OCTETS = 64;

/**
 * Checks that the store works: puts an object, reads it and removes it.
 * @throws ObjectStoreError with the step that failed
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

interface Request {
  method: "PUT" | "GET" | "DELETE";
  name: string;
  body?: Uint8Array<ArrayBuffer>;
  maxBytes: number;
  /** Returns true if the response means success. */
  isDone: (answer: Answer) => boolean;
}

interface Answer {
  status: number;
  etag: string | null;
  /** Null if it is longer than allowed. */
  body: Uint8Array | null;
}

/** Sends one request. Throws if the response does not mean success. */
async function ask(
  { clock, ending }: ObjectStoreDeps,
  signer: Bun.S3Client,
  timeoutMs: number,
  request: Request,
): Promise<Answer & { body: Uint8Array }> {
  const { method, name, maxBytes, isDone } = request;
  const failed = (reason: string, status: number | null = null) =>
    new ObjectStoreError(`${method} ${name}: ${reason}`, status);
  const aborter = new AbortController();
  const signal = ending === undefined ? aborter.signal : AbortSignal.any([aborter.signal, ending]);
  const asking = exchange(signer, request, signal);
  // Report only the code of a failed fetch: its message may contain the signed URL, which is a secret.
  const answer = await within(clock, timeoutMs, asking, "late" as const).catch((error: unknown) => {
    throw failed(reasonOf(error));
  });
  if (answer === "late") {
    aborter.abort();
    asking.catch(() => undefined);
    throw failed("timeout");
  }
  const { status, body } = answer;
  if (!isDone(answer)) throw failed(refusalOf(method, answer), status);
  if (body === null || body.length > maxBytes) throw failed(`longer than ${maxBytes} bytes`, status);
  return { ...answer, body };
}

/** Options that Bun supports but its types lack. */
interface DirectRequest extends BunFetchRequestInit {
  /** Ignores proxies of the environment: the contents are for this server only. */
  proxy: never;
}

async function exchange(
  signer: Bun.S3Client,
  { method, name, body, maxBytes }: Request,
  signal: AbortSignal,
): Promise<Answer> {
  // No other headers: S3 refuses unsigned `x-amz-*` and `content-md5` headers, and only `host` is signed.
  const response = await fetch(signer.presign(name, { method, expiresIn: SIGNED_SECONDS }), {
    method,
    body,
    signal,
    redirect: "manual",
    decompress: false,
    proxy: false,
  } as unknown as DirectRequest);
  const { status, headers } = response;
  return { status, etag: headers.get("etag"), body: await readAll(response, maxBytes) };
}

/** Reads the body and checks its length against the head. Returns null if it is longer than allowed. */
async function readAll(response: Response, maxBytes: number): Promise<Uint8Array | null> {
  const announced = response.headers.get("content-length");
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > Math.max(maxBytes, MAX_REFUSAL_BYTES)) return null;
    chunks.push(chunk);
  }
  if (announced !== null && Number(announced) !== size) throw new Error("cut short");
  return Buffer.concat(chunks, size);
}

/** Encodes all except unreserved characters (RFC 3986 §2.3), as S3 does for signatures. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Formats a refusal, such as `403 SignatureDoesNotMatch`. The reason is in the XML of the response. */
function refusalOf(method: string, answer: Answer): string {
  const { status, body } = answer;
  if (method === "PUT" && isSuccess(answer) && answer.etag === null) return `${status} without an ETag`;
  const code = /<Code>([\w.-]{1,64})<\/Code>/.exec(Buffer.from(body ?? []).toString("latin1"))?.[1];
  return code === undefined ? String(status) : `${status} ${code}`;
}
