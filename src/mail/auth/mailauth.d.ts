/** mailauth's types leave out its reader of tag lists (RFC 6376 §3.2). */
declare module "mailauth/lib/parse-dkim-headers" {
  /** Returns the tags of a whole field by their names; if a tag comes twice, the last. */
  export default function parseDkimHeaders(field: Buffer): {
    parsed: Readonly<Record<string, { value: string | number } | undefined>>;
  };
}

/** mailauth's types leave out the class behind `dkimVerify`. */
declare module "mailauth/lib/dkim/dkim-verifier" {
  import type { DKIMVerifyOptions, DKIMVerifyResult } from "mailauth";

  /** The parts of a body hasher that the verifier uses. */
  interface BodyHasher {
    readonly byteLength: number;
    readonly canonicalizedLength: number;
    readonly bodyHashedBytes: number;
    setContentType(type: unknown): void;
    digest(encoding: "base64"): string;
    getMimeStructureStart(): number;
  }

  /** A signature of the header that is being read. */
  interface SignatureField {
    readonly type: "DKIM" | "ARC";
    readonly signingDomain: string;
    readonly selector: string;
  }

  export class DkimVerifier {
    constructor(options: DKIMVerifyOptions);
    readonly headerFrom: string[];
    readonly fromFields: number;
    readonly results: DKIMVerifyResult["results"];
    readonly headers: DKIMVerifyResult["headers"];
    readonly arc: DKIMVerifyResult["arc"];
    protected readonly signatureHeaders: readonly SignatureField[];
    /** Hashes that signatures ask for, each once. */
    protected readonly bodyHashes: Map<string, BodyHasher>;
    /** Adds a hash and returns its key. `length` is `l=`, or "" if the signature has none. */
    protected addBodyHash(canonicalization: string, algorithm: string, length: number | ""): string;
    /** Takes the header block, with its empty line, and reads the signatures. */
    protected emitHeaders(header: Buffer): Promise<void>;
    /** Checks the signatures. */
    protected finalChunk(): Promise<void>;
  }
}
