import type { Config } from "../config.ts";
import type { Clock } from "../core/clock.ts";
import { newId } from "../core/ids.ts";
import { createPatience } from "../flows/sweep/patience.ts";
import { offloadContents, removeObjects } from "../flows/sweep/offload.ts";
import { log } from "../log.ts";
import {
  checkObjectStore,
  OBJECT_TIMEOUT_MS,
  type ObjectStore,
  type ObjectStoreOptions,
  openObjectStore,
} from "../net/object-store.ts";
import type { Db } from "../store/engine/client.ts";
import type { ObjectReader } from "../store/contents/content-read.ts";
import type { Chore } from "./loop.ts";

/** Time in which an object is read: somebody waits for it. */
const READ_TIMEOUT_MS = 15_000;
/** Octets of an object at most, as a multiple of what its content has: more than an encoding may add. */
const READ_LIMIT_FACTOR = 2;

/** The object store of the configuration, and what its objects' names begin with. */
export interface ConfiguredStore {
  options: ObjectStoreOptions;
  prefix: string;
}

/** What `CONTENT_STORE` and the settings beside it name; null where contents stay in the database. */
export function configuredStore(config: Config): ConfiguredStore | null {
  const { contentStore, s3Endpoint, s3Region: region } = config;
  const { s3AccessKeyId, s3SecretAccessKey, s3SessionToken } = config;
  if (contentStore === null || s3AccessKeyId === null || s3SecretAccessKey === null) return null;
  const [, bucket = "", path = ""] = /^s3:\/\/([^/]+)\/*(.*?)\/*$/.exec(contentStore) ?? [];
  return {
    options: {
      endpoint: s3Endpoint ?? `https://s3.${region}.amazonaws.com`,
      bucket,
      region,
      accessKeyId: s3AccessKeyId,
      secretAccessKey: s3SecretAccessKey,
      ...(s3SessionToken === null ? {} : { sessionToken: s3SessionToken }),
    },
    prefix: path === "" ? "" : `${path}/`,
  };
}

/** The object store in use. */
export interface Objects {
  /** For whoever reads contents. */
  reader: ObjectReader;
  /** What a worker does: moves contents there, removes what nobody names, and says at its start what does not work. */
  chores(db: Db): readonly Chore[];
  /** Cuts the chores' requests; the reader goes on. */
  stop(): void;
}

/** Opens the object store that is configured; null where there is none. */
export function openObjects(config: Config, clock: Clock): Objects | null {
  const configured = configuredStore(config);
  if (configured === null) return null;
  const { options, prefix } = configured;
  const ending = new AbortController();
  const objects = openObjectStore(
    { clock, ending: ending.signal },
    { ...options, timeoutMs: OBJECT_TIMEOUT_MS },
  );
  const reading = openObjectStore({ clock }, { ...options, timeoutMs: READ_TIMEOUT_MS });
  return {
    reader: { read: (object, size) => reading.get(object, size * READ_LIMIT_FACTOR) },
    chores: (db) => [
      { name: "object-store", turn: tryOut(clock, objects, prefix) },
      { name: "offload", turn: offloadContents({ db, clock, objects, prefix }) },
      { name: "unused-objects", turn: removeObjects({ db, clock, objects }) },
    ],
    stop: () => ending.abort(),
  };
}

/** The chore that tries the store until it has worked once: a wrong secret is told at the start, not with the first mail. */
function tryOut(clock: Clock, objects: ObjectStore, prefix: string): () => Promise<void> {
  const patience = createPatience(clock);
  let worked = false;
  return async () => {
    if (worked || !patience.ready()) return;
    try {
      await checkObjectStore(objects, probeName(prefix, clock.now()));
      worked = true;
      log("app").info("the object store works");
    } catch (error) {
      patience.failed();
      log("app").error("the object store does not work", { error: String(error) });
    }
  };
}

/** A name for a probe of the store. */
export function probeName(prefix: string, now: number): string {
  return `${prefix}probe-${newId("req", now)}`;
}
