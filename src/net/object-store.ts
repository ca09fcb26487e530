import { type Clock, within } from "../core/clock.ts";
import { reasonOf } from "../core/errors.ts";

export interface ObjectStoreDeps {
  clock: Clock;
  /** Once aborted, requests under way fail, and so do all later ones. */
  ending?: AbortSignal;
}

/** Where objects lie: a bucket of a server that speaks S3, and who asks it. */
export interface ObjectStoreOptions {
  /** `http://` or `https://`; the bucket follows in the path. */
  endpoint: string;
  bucket: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** Of temporary keys; absent for those that last. */
  sessionToken?: string;
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
/** Seconds that a signature holds from the system's time on: S3 lets clocks be so far apart. */
const SIGNED_SECONDS = 15 * 60;
const OK = 200;
const NOT_FOUND = 404;

/**
 * A bucket whose requests are signed by Bun's S3 client and sent by `fetch`: the client's own have no bound of time or
 * size, and obey `HTTP_PROXY`. Without `sessionToken` the client takes S3_SESSION_TOKEN of the environment, else
 * AWS_SESSION_TOKEN.
 */
export function openObjectStore(deps: ObjectStoreDeps, options: ObjectStoreOptions): ObjectStore {
  const { timeoutMs = OBJECT_TIMEOUT_MS, accessKeyId, ...place } = options;
  // It puts the id into the query as it is given.
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
 * Whether a server has what was put. S3 names the `ETag` of what it keeps; a web server that answers in its place, with a page
 * for all and everything, does not, and the bytes are nowhere else once they have been put.
 */
function isKept(answer: Answer): boolean {
  return isSuccess(answer) && answer.etag !== null;
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

interface Request {
  method: "PUT" | "GET" | "DELETE";
  name: string;
  body?: Uint8Array<ArrayBuffer>;
  maxBytes: number;
  /** Whether an answer says that it is done. */
  isDone: (answer: Answer) => boolean;
}

interface Answer {
  status: number;
  etag: string | null;
  /** Null where it is longer than allowed. */
  body: Uint8Array | null;
}

/** One request, and the answer that says that it is done. */
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
  // The code of a failed fetch: its message may hold the URL, which is a secret as long as its signature holds.
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

/** Bun's own options of a request, which its types lack in this form. */
interface DirectRequest extends BunFetchRequestInit {
  /** Names in the environment no proxy: what is kept there is for this server alone. */
  proxy: never;
}

async function exchange(
  signer: Bun.S3Client,
  { method, name, body, maxBytes }: Request,
  signal: AbortSignal,
): Promise<Answer> {
  // No header beside: S3 refuses `x-amz-*` and `content-md5` that are not signed, and only `host` is.
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

/** The body, as long as its head said; null where it is longer than allowed, and than a refusal may be. */
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

/** All but unreserved characters (RFC 3986 §2.3), as S3 encodes what a signature is over. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** `403 SignatureDoesNotMatch`: S3 says the reason in the XML of its answer. */
function refusalOf(method: string, answer: Answer): string {
  const { status, body } = answer;
  if (method === "PUT" && isSuccess(answer) && answer.etag === null) return `${status} without an ETag`;
  const code = /<Code>([\w.-]{1,64})<\/Code>/.exec(Buffer.from(body ?? []).toString("latin1"))?.[1];
  return code === undefined ? String(status) : `${status} ${code}`;
}
