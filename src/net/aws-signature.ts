import { createHash, createHmac } from "node:crypto";

/** Who asks, and where: what a signature is made with. */
export interface AwsCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
}

/** A request to be signed. The path is as it goes out: percent-encoded once. */
export interface SignedRequest {
  method: string;
  host: string;
  path: string;
  /** SHA-256 of the body, hex. */
  bodyHash: string;
  /** Milliseconds. */
  now: number;
}

const ALGORITHM = "AWS4-HMAC-SHA256";
const SERVICE = "s3";
/** In the order of their names, as the canonical request wants them. */
const SIGNED_HEADERS = "host;x-amz-content-sha256;x-amz-date";

/**
 * The headers that sign a request to S3 (Signature Version 4). The body's hash is among what is signed: a server that
 * got other bytes, or fewer, refuses them.
 */
export function signAws(credentials: AwsCredentials, request: SignedRequest): Record<string, string> {
  const { method, host, path, bodyHash, now } = request;
  const time = awsTime(now);
  const scope = `${time.slice(0, 8)}/${credentials.region}/${SERVICE}/aws4_request`;
  const headers = [`host:${host}`, `x-amz-content-sha256:${bodyHash}`, `x-amz-date:${time}`];
  // An empty line each stands for the query and for the end of the headers.
  const canonical = [method, path, "", ...headers, "", SIGNED_HEADERS, bodyHash].join("\n");
  const toSign = [ALGORITHM, time, scope, sha256Hex(canonical)].join("\n");
  const signature = hmac(signingKey(credentials, time.slice(0, 8)), toSign).toString("hex");
  return {
    authorization: `${ALGORITHM} Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${SIGNED_HEADERS}, Signature=${signature}`,
    "x-amz-content-sha256": bodyHash,
    "x-amz-date": time,
  };
}

/** `YYYYMMDDTHHMMSSZ`. */
function awsTime(now: number): string {
  return new Date(now).toISOString().replace(/[-:]|\.\d{3}/g, "");
}

function signingKey({ secretAccessKey, region }: AwsCredentials, day: string): Buffer<ArrayBuffer> {
  let key = Buffer.from(`AWS4${secretAccessKey}`);
  for (const step of [day, region, SERVICE, "aws4_request"]) key = hmac(key, step);
  return key;
}

function hmac(key: Buffer, text: string): Buffer<ArrayBuffer> {
  return Buffer.from(createHmac("sha256", key).update(text).digest());
}

function sha256Hex(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
