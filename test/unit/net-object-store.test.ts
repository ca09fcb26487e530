import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { systemClock } from "../../src/clock.ts";
import { signAws } from "../../src/net/aws-signature.ts";
import { checkObjectStore, ObjectStoreError, openObjectStore } from "../../src/net/object-store.ts";
import { manualClock } from "../support/manual-clock.ts";
import { type Mood, S3_BUCKET, S3_KEYS, startS3 } from "../support/s3-server.ts";

const server = await startS3();
const options = { endpoint: server.endpoint, bucket: S3_BUCKET, ...S3_KEYS };
const store = openObjectStore({ clock: systemClock }, options);
afterAll(() => server.stop());
beforeEach(() => server.mood({ kind: "serve" }));

async function trouble(work: Promise<unknown>): Promise<ObjectStoreError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof ObjectStoreError) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

test("signs as another client does, given the same words", async () => {
  const other = new Bun.S3Client({ ...options });
  // It leaves the payload out of the signature, which our server does not take.
  await expect(other.write("signed/twice é.txt", "text")).rejects.toThrow();
  const seen = server.seen.at(-1)?.headers;
  const time = seen?.get("x-amz-date") ?? "";
  const ours = signAws(S3_KEYS, {
    method: "PUT",
    host: new URL(server.endpoint).host,
    path: `/${S3_BUCKET}/signed/twice%20%C3%A9.txt`,
    bodyHash: "UNSIGNED-PAYLOAD",
    now: Date.parse(time.replace(/(....)(..)(..)T(..)(..)(..)Z/, "$1-$2-$3T$4:$5:$6Z")),
  });
  expect(ours.authorization).toBe(seen?.get("authorization") ?? "");
});

for (const size of [0, 1, 65_536, 3_000_000])
  test(`an object of ${size} bytes comes back as it was put`, async () => {
    const bytes = new Uint8Array(randomBytes(size));
    await store.put(`kept/${size}`, bytes);
    expect(Buffer.compare(await store.get(`kept/${size}`, size), bytes)).toBe(0);
  });

for (const name of ["a b/c+d.bin", "ä/ö", "x(1)!*'.z", "per%cent"])
  test(`a name such as ${name} is signed as it is sent`, async () => {
    await store.put(name, new Uint8Array([1]));
    expect(server.objects.has(name)).toBe(true);
  });

test("a removed object is gone, and removing it again is no trouble", async () => {
  await store.put("gone", new Uint8Array([1]));
  await store.remove("gone");
  await store.remove("gone");
  expect(await trouble(store.get("gone", 10))).toMatchObject({ status: 404 });
});

test("an object longer than allowed is trouble, one just as long is not", async () => {
  await store.put("long", new Uint8Array(20_000));
  expect((await store.get("long", 20_000)).length).toBe(20_000);
  expect((await trouble(store.get("long", 19_999))).message).toContain("longer than 19999 bytes");
});

const MOODS: readonly [name: string, mood: Mood, says: string, status: number | null][] = [
  ["is overloaded", { kind: "refuse", status: 503, code: "SlowDown" }, "503 SlowDown", 503],
  ["sends elsewhere", { kind: "refuse", status: 307, code: "TemporaryRedirect" }, "307", 307],
  ["cuts the object short", { kind: "cut" }, "", null],
];
for (const [name, mood, says, status] of MOODS)
  test(`reading from a server that ${name} fails, and says so`, async () => {
    await store.put("there", new Uint8Array(100_000));
    server.mood(mood);
    const error = await trouble(store.get("there", 100_000));
    expect(error.message).toContain(`GET there: ${says}`);
    expect([error.status, error.code]).toEqual([status, "OBJECT_STORE"]);
  });

describe("time", () => {
  for (const method of ["PUT", "GET", "DELETE"])
    test(`a ${method} that hangs ends at its limit, and its connection with it`, async () => {
      const clock = manualClock(systemClock.now());
      const late = openObjectStore({ clock }, { ...options, timeoutMs: 5000 });
      const before = server.seen.filter((one) => one.method === method).length;
      server.mood({ kind: "hang" });
      const work = {
        PUT: () => late.put("h", new Uint8Array(10)),
        GET: () => late.get("h", 10),
        DELETE: () => late.remove("h"),
      }[method];
      const failing = trouble(work?.() ?? Promise.resolve());
      await server.saw(method, before + 1);
      clock.advance(4999);
      expect(await Promise.race([failing, Promise.resolve("waits")])).toBe("waits");
      clock.advance(1);
      expect((await failing).message).toContain("timeout");
    });
});

test("a server that is not there is trouble without a status", async () => {
  const nobody = openObjectStore({ clock: systemClock }, { ...options, endpoint: "http://127.0.0.1:9" });
  expect(await trouble(nobody.get("x", 1))).toMatchObject({ status: null });
});

const WRONG: readonly [string, Partial<typeof S3_KEYS>, string][] = [
  ["secret", { secretAccessKey: "another" }, "403 SignatureDoesNotMatch"],
  ["key id", { accessKeyId: "NOBODY" }, "403 InvalidAccessKeyId"],
  ["region", { region: "elsewhere" }, "403 AuthorizationHeaderMalformed"],
];
for (const [name, keys, says] of WRONG)
  test(`a wrong ${name} is told by its name, and never shown`, async () => {
    const error = await trouble(
      openObjectStore({ clock: systemClock }, { ...options, ...keys }).put("x", new Uint8Array(1)),
    );
    expect(error.message).toContain(says);
    expect(error.message).not.toContain("another");
  });

test("nothing of the environment changes where or how it asks", async () => {
  const script = `
    import { systemClock } from "${import.meta.dir}/../../src/clock.ts";
    import { openObjectStore } from "${import.meta.dir}/../../src/net/object-store.ts";
    await openObjectStore({ clock: systemClock }, ${JSON.stringify(options)}).put("from-child", new Uint8Array(3));`;
  const child = Bun.spawn([process.execPath, "-e", script], {
    env: {
      PATH: process.env.PATH ?? "",
      HTTP_PROXY: "http://127.0.0.1:9",
      http_proxy: "http://127.0.0.1:9",
      AWS_SESSION_TOKEN: "stray",
      AWS_ENDPOINT: "http://127.0.0.1:9",
      AWS_REGION: "stray",
    },
    stderr: "pipe",
  });
  expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, ""]);
  const seen = server.seen.at(-1);
  expect([seen?.name, seen?.headers.get("x-amz-security-token")]).toEqual(["from-child", null]);
});

describe("a check of the store", () => {
  test("leaves nothing there where all is well", async () => {
    await checkObjectStore(store, "probe");
    expect(server.objects.has("probe")).toBe(false);
  });

  for (const method of ["PUT", "GET", "DELETE"])
    test(`fails with what was refused where ${method} is`, async () => {
      server.mood({ kind: "refuse", status: 403, code: "AccessDenied" }, method);
      const error = await trouble(checkObjectStore(store, "probe"));
      expect(error.message).toBe(`${method} probe: 403 AccessDenied`);
      expect(server.objects.has("probe")).toBe(method === "DELETE");
      server.objects.delete("probe");
    });

  test("fails where other bytes come back than were put", async () => {
    const forgetful = { ...store, get: async () => new Uint8Array(64) };
    expect((await trouble(checkObjectStore(forgetful, "probe"))).message).toContain("other bytes");
  });
});

test("once a store is ended, its requests under way fail, and so do later ones", async () => {
  const ending = new AbortController();
  const ended = openObjectStore({ clock: systemClock, ending: ending.signal }, options);
  const before = server.seen.length;
  server.mood({ kind: "hang" });
  const underWay = trouble(ended.put("x", new Uint8Array(1)));
  await server.saw("PUT", server.seen.slice(0, before).filter(({ method }) => method === "PUT").length + 1);
  ending.abort();
  expect((await underWay).status).toBeNull();
  server.mood({ kind: "serve" });
  expect((await trouble(ended.put("x", new Uint8Array(1)))).status).toBeNull();
});
