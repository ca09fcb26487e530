import type { Key } from "../../core/crypto/key-ring.ts";
import { Admission } from "../../core/concurrency/admission.ts";
import { createKeyedMutex, type KeyedMutex } from "../../core/concurrency/keyed-mutex.ts";
import type { DkimSigner } from "../../mail/auth/dkim.ts";
import type { Contents } from "../../store/contents/content-read.ts";
import { LARGE_READS } from "../../store/contents/large-reads.ts";
import type { Store } from "../../store/engine/client.ts";
import type { MailLinks, RenderingError } from "./make-mail.ts";
import type { Inspect } from "./reading-tasks.ts";
import type { Renderer } from "./rendering-tasks.ts";

/** The services that make and read messages. */
export interface Making extends Store, Contents, MailLinks {
  renderer: Renderer;
  inspect: Inspect;
  /** Opens the private keys in the database, and seals them. */
  boxKey: Key;
  memory: RenderMemory;
}

/** Memory of a process for making messages: caches, and turns per message. */
export interface RenderMemory {
  /** Opened private keys by name. Reading a PEM costs as much as signing with it. */
  keys: Map<string, DkimSigner>;
  /** By message, so that a template is rendered once for all its recipients. */
  byMessage: KeyedMutex;
  /**
   * Rendering errors by message and version of its template. Without them each of fifty recipients would take seconds
   * to fail.
   */
  failures: Map<string, RenderingError>;
  /**
   * Admission of large messages that are shown. Those that are sent have separate limits (`dispatch/in-flight-limits`).
   */
  largeReads: Admission;
}

/** Returns an empty memory. */
export function renderMemory(): RenderMemory {
  return {
    keys: new Map(),
    byMessage: createKeyedMutex(),
    failures: new Map(),
    largeReads: new Admission(LARGE_READS),
  };
}
