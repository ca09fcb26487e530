import { Admission } from "../../src/core/concurrency/admission.ts";
import type { PushDeps } from "../../src/flows/webhooks/push.ts";
import { SharedPayloads } from "../../src/flows/webhooks/shared-payloads.ts";
import { LARGE_READS } from "../../src/store/contents/large-reads.ts";

/** Makes the memory that the pushes of a process share. */
export function payloadMemory(): Pick<PushDeps, "memory" | "payloads"> {
  return { memory: { largeReads: new Admission(LARGE_READS) }, payloads: new SharedPayloads() };
}
