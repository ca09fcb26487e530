import type { Config } from "../../config.ts";
import { SettingsError } from "../../core/errors.ts";
import type { Clock } from "../../core/time/clock.ts";
import { newId } from "../../core/ids.ts";
import { createBackoff } from "../../flows/sweep/backoff.ts";
import { offloadContents, removeObjects } from "../../flows/sweep/offload.ts";
import { log } from "../../log.ts";
import {
  checkObjectStore,
  OBJECT_TIMEOUT_MS,
  type ObjectStore,
  type ObjectStoreOptions,
  openObjectStore,
} from "../../net/object-store.ts";
import type { Db } from "../../store/engine/client.ts";
import type { ObjectReader } from "../../store/contents/content-read.ts";
import type { Chore } from "../process/loop.ts";

/** Timeout of reading an object, for which a client waits, milliseconds. */
const READ_TIMEOUT_MS = 15_000;
/** Largest object, as a multiple of its content's size. An encoding adds less. */
const READ_LIMIT_FACTOR = 2;

/** The configured object store, and the prefix of its objects' names. */
export interface ConfiguredStore {
  options: ObjectStoreOptions;
  prefix: string;
}

/** Reads the settings of the object store; null if contents stay in the database. */
export function configuredStore(config: Config): ConfiguredStore | null {
  return config.contentStore === null ? null : storeAt(config, config.contentStore);
}

/** Returns the object store at `s3://bucket/prefix`. @throws SettingsError if the settings have no key for it */
export function storeAt(config: Config, place: string): ConfiguredStore {
  const { s3Endpoint, s3Region: region, s3AccessKeyId, s3SecretAccessKey, s3SessionToken } = config;
  if (s3AccessKeyId === null || s3SecretAccessKey === null)
    throw new SettingsError(`${place} needs S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY`);
  const [, bucket = "", path = ""] = /^s3:\/\/([^/]+)\/*(.*?)\/*$/.exec(place) ?? [];
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
  /** Reads contents in the store. */
  reader: ObjectReader;
  /** Returns the chores of a worker: test the store at the start, move contents there, remove unused objects. */
  chores(db: Db): readonly Chore[];
  /** Aborts the requests of the chores. The reader still works. */
  stop(): void;
}

/** Opens the configured object store; null if there is none. */
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
      { name: "object-store", turn: testStore(clock, objects, prefix) },
      { name: "offload", turn: offloadContents({ db, clock, objects, prefix }) },
      { name: "unused-objects", turn: removeObjects({ db, clock, objects }) },
    ],
    stop: () => ending.abort(),
  };
}

/** Makes the chore that tests the store until it works once, so that a wrong secret is logged at the start. */
function testStore(clock: Clock, objects: ObjectStore, prefix: string): () => Promise<void> {
  const backoff = createBackoff(clock);
  let worked = false;
  return async () => {
    if (worked || !backoff.isDue()) return;
    try {
      await checkObjectStore(objects, probeName(prefix, clock.now()));
      worked = true;
      log("app").info("the object store works");
    } catch (error) {
      backoff.recordFailure();
      log("app").error("the object store does not work", { error: String(error) });
    }
  };
}

/** Returns a name for a test object. */
export function probeName(prefix: string, now: number): string {
  return `${prefix}probe-${newId("req", now)}`;
}
