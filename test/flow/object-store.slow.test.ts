import { DAY_MS } from "../../src/core/time/units.ts";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { removeUnusedContents } from "../../src/flows/sweep/removals.ts";
import {
  MOVED_AFTER_MS,
  offloadContents,
  removeObjects,
  UPLOAD_LOST_MS,
} from "../../src/flows/sweep/offload.ts";
import { FIRST_BACKOFF_MS, MAX_BACKOFF_MS } from "../../src/flows/sweep/backoff.ts";
import { STOP_GRACE_MS } from "../../src/app.ts";
import { forgetContents } from "../../src/flows/sweep/retention.ts";
import { openObjectStore } from "../../src/net/object-store.ts";
import type { Db } from "../../src/store/engine/client.ts";
import { UNUSED_KEPT_MS } from "../../src/store/contents/contents.ts";
import { around } from "../support/around.ts";
import { newFolder } from "../support/folder.ts";
import { deliver } from "../support/mail-in.ts";
import { until } from "../support/poll.ts";
import { serviceProcess } from "../support/process.ts";
import { S3_BUCKET, S3_KEYS, type S3Server, startS3 } from "../support/s3-server.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";
import { type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";
import { reason } from "../support/reason.ts";
import { postrider } from "./command-program.ts";

const MB = 1024 * 1024;
/** Time limit of a test that starts the service more than once, or as a separate process. */
const STARTS_MS = 180_000;
setDefaultTimeout(STARTS_MS);
const PREFIX = "post/";
/** Timers run so much faster than the system's in tests that wait for the service's own chores. */
const HURRY = 5;

// Megabytes pass through each test, on a machine that may be busy.

let service: TestService;
let running = false;
let s3: S3Server;
let clock: ShiftedClock;

function storeSettings() {
  return {
    CONTENT_STORE: `s3://${S3_BUCKET}/post`,
    S3_ENDPOINT: s3.endpoint,
    S3_REGION: S3_KEYS.region,
    S3_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
    S3_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
  };
}

/** The service on an object store, without its own chores, so that only the test moves objects. */
async function start(more: Record<string, string> = {}): Promise<void> {
  service = await startService(
    {
      ROLES: "api,smtp,worker",
      ...storeSettings(),
      ...more,
    },
    clock,
  );
  running = true;
  await receivingInboxes(service, "shop.test", ["help@shop.test"]);
}

beforeEach(async () => {
  clock = shiftedClock();
  s3 = await startS3();
});
afterEach(async () => {
  s3.mood({ kind: "serve" });
  if (running) await service.stop();
  running = false;
  await s3.stop();
});

const get = (path: string) => service.call("GET", path);

async function bytesAt(path: string, url = service.url): Promise<Buffer> {
  const answer = await fetch(`${url}${path}`, {
    headers: { authorization: `Bearer ${service.projectKey}` },
  });
  expect(answer.status).toBe(200);
  return Buffer.from(await answer.arrayBuffer());
}

/** Dependencies of the chores, on the service's database. */
function deps(db: Db = service.app.db) {
  const objects = openObjectStore(
    { clock },
    { endpoint: s3.endpoint, bucket: S3_BUCKET, ...S3_KEYS, timeoutMs: 2000 },
  );
  return { db, clock, objects, prefix: PREFIX };
}

const move = (db?: Db) => offloadContents(deps(db))();
const sweep = (db?: Db) => removeObjects(deps(db))();

async function places(): Promise<string[]> {
  const rows = await service.app.db.all<{ stored_in: string }>(
    "SELECT stored_in FROM contents WHERE size > 16384 ORDER BY size",
  );
  return rows.map(({ stored_in }) => stored_in);
}

/** Objects that the database knows, and those that exist. */
async function objects(): Promise<{ named: string[]; stray: string[]; there: string[] }> {
  const { db } = service.app;
  const named = await db.all<{ object: string }>(
    "SELECT object FROM contents WHERE object IS NOT NULL ORDER BY 1",
  );
  const stray = await db.all<{ object: string }>("SELECT object FROM stray_objects ORDER BY 1");
  return {
    named: named.map(({ object }) => object),
    stray: stray.map(({ object }) => object),
    there: [...s3.objects.keys()].sort(),
  };
}

async function send(bytes: Uint8Array, more: Record<string, unknown> = {}): Promise<string> {
  const sent = await service.call("POST", "/v1/emails", {
    from: { email: "news@shop.test" },
    to: [{ email: "ann@home.test" }],
    subject: "Large",
    text: "See the attachment",
    attachments: [{ filename: "a.bin", content: Buffer.from(bytes).toString("base64") }],
    ...more,
  });
  expect(sent.status).toBe(202);
  return sent.body.id;
}

const attachmentOf = async (id: string): Promise<string> =>
  `/v1/emails/${id}/attachments/${(await get(`/v1/emails/${id}`)).body.attachments[0].id}`;

describe("contents move into the object store", () => {
  // Capture stores the composed message too, which is a second content of the same size.
  beforeEach(() => start({ ROLES: "api,smtp" }));

  test("an attachment of 1 MB and a message of 1 MB keep their bytes, and small ones stay", async () => {
    const attached = randomBytes(MB);
    const id = await send(attached);
    // A thousand bytes.
    await send(randomBytes(1000));
    const lines = Array.from({ length: 14_000 }, () => randomBytes(37).toString("hex"));
    expect(
      await deliver(service, { to: "help@shop.test", headers: ["Subject: Big"], body: lines.join("\r\n") }),
    ).toStartWith("250");
    const [{ id: inbound }] = (await get("/v1/emails?direction=inbound")).body.data;
    const before = await bytesAt(`/v1/emails/${inbound}/raw`);
    clock.shift(MOVED_AFTER_MS + 1000);
    await move();
    // Its body contains the message's text, too.
    expect(await places()).toEqual(["object", "object", "object"]);
    expect(await service.app.db.all("SELECT key FROM content_chunks")).toEqual([]);
    const small = await service.app.db.all(
      "SELECT stored_in FROM contents WHERE size < 16384 GROUP BY stored_in",
    );
    expect(small).toEqual([{ stored_in: "row" }]);
    expect(Buffer.compare(await bytesAt(await attachmentOf(id)), attached)).toBe(0);
    expect(Buffer.compare(await bytesAt(`/v1/emails/${inbound}/raw`), before)).toBe(0);
    expect((await get(`/v1/emails/${inbound}`)).body.text).toContain(lines[13_999]);
    const { named, stray, there } = await objects();
    expect([named, stray]).toEqual([there, []]);
    for (const name of named) expect(name).toMatch(/^post\/[0-9a-f]{64}-[0-9A-Za-z]{16}$/);
  });

  test("an export holds the contents that have moved, so that an installation without the store reads them", async () => {
    const attached = randomBytes(MB);
    const path = await attachmentOf(await send(attached));
    clock.shift(MOVED_AFTER_MS + 1000);
    await move();
    expect(await places()).toContain("object");
    const [file, folder] = [join(newFolder("transfer"), "moved.ndjson"), newFolder("transfer")];
    copyFileSync(join(service.folder, "master.key"), join(folder, "master.key"));
    const from = { DATA_DIR: service.folder };
    expect((await postrider(["export", file, "--messages"], from)).stderr).toContain("none is configured");
    expect((await postrider(["export", file, "--messages"], { ...from, ...storeSettings() })).code).toBe(0);
    expect((await postrider(["import", file], { DATA_DIR: folder })).code).toBe(0);
    const other = await startService({ ROLES: "api", DATA_DIR: folder });
    try {
      expect(Buffer.compare(await bytesAt(path, other.url), attached)).toBe(0);
    } finally {
      await other.stop();
    }
  });

  test("once they are old enough, and not before", async () => {
    await send(randomBytes(MB));
    clock.shift(MOVED_AFTER_MS - 5000);
    await move();
    expect(s3.seen).toEqual([]);
  });

  test("a content that is sent again is not uploaded again", async () => {
    const bytes = randomBytes(MB);
    await send(bytes);
    clock.shift(MOVED_AFTER_MS + 1000);
    await move();
    const again = await send(bytes);
    clock.shift(MOVED_AFTER_MS + 1000);
    await move();
    expect((await objects()).there).toHaveLength(1);
    expect(Buffer.compare(await bytesAt(await attachmentOf(again)), bytes)).toBe(0);
  });

  test("contents that two processes move at once each end as one object", async () => {
    for (let at = 0; at < 5; at++) await send(randomBytes(40_000));
    clock.shift(MOVED_AFTER_MS + 1000);
    await Promise.all([move(), move()]);
    clock.shift(1000);
    await sweep();
    const { named, stray, there } = await objects();
    expect([named.length, named, stray]).toEqual([5, there, []]);
  });

  const TROUBLE = [
    ["refuses", () => s3.mood({ kind: "refuse", status: 503, code: "SlowDown" }, "PUT")],
    ["hangs", () => s3.mood({ kind: "hang" }, "PUT")],
    ["takes only half", () => s3.mood({ kind: "cut" }, "PUT")],
    ["is not there", () => s3.stop()],
  ] as const;
  for (const [name, befall] of TROUBLE)
    test(`later if the store ${name}: they stay readable in the database, and the store is tried more and more rarely`, async () => {
      const bytes = randomBytes(MB);
      const id = await send(bytes);
      clock.shift(MOVED_AFTER_MS + 1000);
      await befall();
      const turn = offloadContents(deps());
      await turn();
      const asked = s3.seen.length;
      await turn();
      expect(s3.seen.length).toBe(asked);
      expect(Buffer.compare(await bytesAt(await attachmentOf(id)), bytes)).toBe(0);
      if (name === "is not there") await s3.start();
      s3.mood({ kind: "serve" });
      clock.shift(FIRST_BACKOFF_MS + 100);
      await turn();
      expect(await places()).toEqual(["object"]);
      await sweep();
      const { named, stray, there } = await objects();
      expect([named, stray]).toEqual([there, []]);
      expect(Buffer.compare(await bytesAt(await attachmentOf(id)), bytes)).toBe(0);
    });

  test("a content that the store refuses does not block later ones", async () => {
    for (let at = 0; at < 9; at++) await send(randomBytes(40_000));
    clock.shift(MOVED_AFTER_MS + 1000);
    const given = deps();
    let refused: Uint8Array | null = null;
    const picky = {
      ...given.objects,
      put: async (name: string, bytes: Uint8Array<ArrayBuffer>) => {
        refused ??= bytes;
        if (Buffer.compare(refused, bytes) === 0) throw new Error("too odd");
        await given.objects.put(name, bytes);
      },
    };
    await offloadContents({ ...given, objects: picky })();
    expect((await places()).filter((place) => place === "object")).toHaveLength(8);
  });

  test("if a process dies after the upload, a later turn removes its object and the content stays complete", async () => {
    const bytes = randomBytes(MB);
    const id = await send(bytes);
    clock.shift(MOVED_AFTER_MS + 1000);
    let writes = 0;
    const dying: Db = {
      ...around(service.app.db),
      write: (statements) =>
        ++writes === 1 ? service.app.db.write(statements) : Promise.reject(new Error("killed")),
    };
    expect(String(await reason(move(dying)))).toContain("killed");
    expect(s3.objects.size).toBe(1);
    await sweep();
    expect(s3.objects.size).toBe(1);
    clock.shift(UPLOAD_LOST_MS + 1000);
    await sweep();
    expect([s3.objects.size, await places()]).toEqual([0, ["chunks"]]);
    expect(Buffer.compare(await bytesAt(await attachmentOf(id)), bytes)).toBe(0);
  });

  test("an upload given up in the meantime does not count", async () => {
    await send(randomBytes(MB));
    clock.shift(MOVED_AFTER_MS + 1000);
    const given = deps();
    const slow = {
      ...given.objects,
      async put(name: string, bytes: Uint8Array<ArrayBuffer>) {
        await given.objects.put(name, bytes);
        clock.shift(UPLOAD_LOST_MS + 1000);
        // Another process removes it, and dies before it has recorded that.
        const dying: Db = {
          ...around(service.app.db),
          write: (statements) =>
            statements.some(({ sql }) => sql.startsWith("DELETE FROM stray_objects"))
              ? Promise.reject(new Error("killed"))
              : service.app.db.write(statements),
        };
        expect(String(await reason(sweep(dying)))).toContain("killed");
      },
    };
    await offloadContents({ ...given, objects: slow })();
    expect([await places(), s3.objects.size]).toEqual([["chunks"], 0]);
  });
});

describe("contents without references leave the object store", () => {
  beforeEach(() => start({ ROLES: "api,smtp" }));

  /** A message whose content is an object without references. */
  async function letGo(bytes: Uint8Array): Promise<void> {
    const id = await send(bytes);
    await service.app.db.write([
      { sql: "UPDATE recipients SET status = 'delivered', due_at = NULL WHERE message_id = ?", args: [id] },
    ]);
    clock.shift(MOVED_AFTER_MS + 1000);
    await move();
    clock.shift(2 * DAY_MS);
    await forgetContents({ db: service.app.db, clock }, 1)();
  }

  test("an unused content leaves the object store after an hour, its row first", async () => {
    await letGo(randomBytes(MB));
    await sweep();
    expect((await objects()).there).toHaveLength(1);
    clock.shift(UNUSED_KEPT_MS + 1000);
    await removeUnusedContents({ db: service.app.db, clock });
    await sweep();
    expect(await objects()).toEqual({ named: [], stray: [], there: [] });
    expect(await places()).toEqual([]);
  });

  test("not if a message refers to them again", async () => {
    const bytes = randomBytes(MB);
    await letGo(bytes);
    const id = await send(bytes);
    clock.shift(UNUSED_KEPT_MS + 1000);
    await sweep();
    expect(Buffer.compare(await bytesAt(await attachmentOf(id)), bytes)).toBe(0);
  });

  test("a client that sends the same bytes during the removal gets a new object", async () => {
    const bytes = randomBytes(MB);
    await letGo(bytes);
    clock.shift(UNUSED_KEPT_MS + 1000);
    s3.mood({ kind: "refuse", status: 503, code: "SlowDown" }, "DELETE");
    await sweep();
    const id = await send(bytes);
    clock.shift(MOVED_AFTER_MS + 1000);
    await move();
    expect((await objects()).there).toHaveLength(2);
    s3.mood({ kind: "serve" });
    clock.shift(MAX_BACKOFF_MS);
    await sweep();
    const { named, stray, there } = await objects();
    expect([named, stray]).toEqual([there, []]);
    expect(Buffer.compare(await bytesAt(await attachmentOf(id)), bytes)).toBe(0);
  });

  test("later if the store is unreachable or hangs, and no row refers to an object that may be gone", async () => {
    await letGo(randomBytes(MB));
    clock.shift(UNUSED_KEPT_MS + 1000);
    const turn = removeObjects(deps());
    s3.mood({ kind: "hang" }, "DELETE");
    await turn();
    const { named, stray, there } = await objects();
    expect([named, stray]).toEqual([[], there]);
    s3.mood({ kind: "serve" });
    await turn();
    expect((await objects()).there).toHaveLength(1);
    clock.shift(FIRST_BACKOFF_MS + 100);
    await turn();
    expect(await objects()).toEqual({ named: [], stray: [], there: [] });
  });

  test("objects that the store will not delete do not block later ones", async () => {
    const { db, clock: time, objects: store } = deps();
    const names = Array.from({ length: 40 }, (_, at) => `${PREFIX}${String(at).padStart(2, "0")}`);
    const held = new Set([...names.slice(0, 9), ...names.slice(20, 22)]);
    for (const name of names) s3.objects.set(name, new Uint8Array(1));
    await db.write(
      names.map((object) => ({
        sql: "INSERT INTO stray_objects (object, since, doomed) VALUES (?, ?, 1)",
        args: [object, time.now()],
      })),
    );
    const asked: string[] = [];
    const holding = {
      ...store,
      remove: async (name: string) => {
        asked.push(name);
        if (held.has(name)) throw new Error("403 AccessDenied");
        await store.remove(name);
      },
    };
    const turn = removeObjects({ db, clock: time, objects: holding });
    await turn();
    clock.shift(FIRST_BACKOFF_MS + 100);
    await turn();
    expect(await objects()).toEqual({ named: [], stray: [...held], there: [...held] });
    // Each has been tried once, and the held ones are tried again after a rest.
    expect(asked).toEqual(names);
    await turn();
    expect(asked).toEqual(names);
    held.clear();
    clock.shift(MAX_BACKOFF_MS);
    await turn();
    expect(await objects()).toEqual({ named: [], stray: [], there: [] });
  });
});

describe("while the object store is unreachable", () => {
  beforeEach(() => {
    // The chore that moves contents waits for seconds.
    clock = shiftedClock(HURRY);
    return start();
  });

  test("mail is accepted as usual, and reading a moved content is 503 until it is back", async () => {
    const bytes = randomBytes(MB);
    const scheduledAt = new Date(clock.now() + DAY_MS).toISOString();
    const id = await send(bytes, { scheduledAt });
    const path = await attachmentOf(id);
    clock.shift(MOVED_AFTER_MS + 1000);
    // The worker moves it by itself.
    await until(async () => (await places()).includes("object"));
    await s3.stop();
    const answer = await get(path);
    expect([answer.status, answer.body.error.type]).toEqual([503, "service_unavailable"]);
    expect((await get(`/v1/emails/${id}`)).status).toBe(200);
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
    expect(await deliver(service, { to: "help@shop.test", body: "x".repeat(900) })).toStartWith("250");
    const taken = await send(randomBytes(MB));
    await service.message(taken, "delivered");
    await s3.start();
    expect(Buffer.compare(await bytesAt(path), bytes)).toBe(0);
  });

  test("a message whose attachment is there is retried, and sent completely when it is back", async () => {
    const scheduledAt = new Date(clock.now() + DAY_MS).toISOString();
    const id = await send(randomBytes(MB), { scheduledAt });
    clock.shift(MOVED_AFTER_MS + 1000);
    await until(async () => (await places()).includes("object"));
    s3.mood({ kind: "refuse", status: 500, code: "InternalError" }, "GET");
    clock.shift(DAY_MS);
    await service.message(id, "delivery_delayed");
    s3.mood({ kind: "serve" });
    clock.shift(2 * 60_000);
    const gone = await service.message(id, "delivered");
    expect(gone.attachments).toHaveLength(1);
    expect((await bytesAt(`/v1/emails/${id}/raw`)).length).toBeGreaterThan(MB);
  });

  test("a restart finds contents that were moved before it", async () => {
    const bytes = randomBytes(MB);
    const id = await send(bytes);
    await service.message(id, "delivered");
    clock.shift(MOVED_AFTER_MS + 1000);
    await until(async () => (await places()).every((place) => place === "object"));
    await service.restart();
    expect(Buffer.compare(await bytesAt(await attachmentOf(id)), bytes)).toBe(0);
  });

  test("a stop does not wait for an upload that hangs, and the next start moves the content", async () => {
    s3.mood({ kind: "hang" }, "PUT");
    await send(randomBytes(MB));
    const asked = s3.seen.filter(({ method }) => method === "PUT").length;
    clock.shift(MOVED_AFTER_MS + 1000);
    await s3.saw("PUT", asked + 1);
    const began = performance.now();
    await service.app.stop();
    expect(performance.now() - began).toBeLessThan(STOP_GRACE_MS / 2);
    s3.mood({ kind: "serve" });
    await service.restart();
    clock.shift(FIRST_BACKOFF_MS);
    await until(async () => (await places()).every((place) => place === "object"));
  });
});

describe("at its start the service tests the store and logs", () => {
  const CASES = [
    ["that it works", {}, "", "the object store works"],
    ["that it works at an address with trailing slashes", {}, "//", "the object store works"],
    ["a failure as an error", { S3_SECRET_ACCESS_KEY: "not-the-secret" }, "", "403 SignatureDoesNotMatch"],
    ["that no server is there", { S3_ENDPOINT: "http://127.0.0.1:9" }, "", "the object store does not work"],
  ] as const;
  for (const [name, env, behind, says] of CASES)
    test(`${name}, and continues`, async () => {
      const settings = {
        CONTENT_STORE: `s3://${S3_BUCKET}/post`,
        S3_REGION: S3_KEYS.region,
        S3_ENDPOINT: `${s3.endpoint}${behind}`,
        S3_ACCESS_KEY_ID: S3_KEYS.accessKeyId,
        S3_SECRET_ACCESS_KEY: S3_KEYS.secretAccessKey,
        LOG_FORMAT: "json",
        DELIVERY: "capture",
      };
      const child = serviceProcess({ ...settings, ...env });
      try {
        await child.start();
        const said = () => child.output().stdout + child.output().stderr;
        await until(() => said().includes(says));
        expect((await fetch(`${child.url}/readyz`)).status).toBe(200);
        expect(said()).not.toContain(S3_KEYS.secretAccessKey);
        expect(said()).not.toContain("not-the-secret");
        expect([...s3.objects.keys()]).toEqual([]);
      } finally {
        await child.remove();
      }
    });
});
