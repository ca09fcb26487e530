import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { systemClock } from "../../src/clock.ts";
import { checkObjectStore, ObjectStoreError, openObjectStore } from "../../src/net/object-store.ts";
import { manualClock } from "../support/manual-clock.ts";
import { type Mood, S3_BUCKET, S3_KEYS, S3_ODD_KEYS, S3_SESSION, startS3 } from "../support/s3-server.ts";

const server = await startS3();
const options = { endpoint: server.endpoint, bucket: S3_BUCKET, ...S3_KEYS };
const store = openObjectStore({ clock: systemClock }, options);
afterAll(() => server.stop());
beforeEach(() => {
  server.mood({ kind: "serve" });
  server.ahead(0);
});

async function trouble(work: Promise<unknown>): Promise<ObjectStoreError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof ObjectStoreError) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

describe("the server of these tests", () => {
  const MINUTE_MS = 60_000;
  const CASES: readonly [name: string, says: string, change: (url: string) => string, init?: RequestInit][] =
    [
      ["takes a presigned URL", "", (url) => url],
      ["refuses it for another name", "SignatureDoesNotMatch", (url) => url.replace("/one", "/two")],
      ["refuses it for another method", "SignatureDoesNotMatch", (url) => url, { method: "DELETE" }],
      ["refuses it for a longer time", "SignatureDoesNotMatch", (url) => url.replace(/(Expires=)60/, "$161")],
      ["refuses it without a signature", "SignatureDoesNotMatch", (url) => url.replace(/Signature=\w+/, "")],
      [
        "refuses a checksum that is not signed",
        "AccessDenied",
        (url) => url,
        { headers: { "content-md5": "1B2M2Y8AsgTpgAmY7PhCfg==" } },
      ],
    ];
  for (const [name, says, change, init] of CASES)
    test(name, async () => {
      const url = new Bun.S3Client(options).presign("one", { method: "PUT", expiresIn: 60 });
      const answer = await fetch(change(url), { method: "PUT", body: "x", ...init });
      expect([answer.ok, await answer.text()]).toEqual([says === "", expect.stringContaining(says)]);
    });

  test("the server of these tests refuses a URL once it has expired, and not before", async () => {
    const url = new Bun.S3Client(options).presign("one", { method: "PUT", expiresIn: 60 });
    server.ahead(MINUTE_MS / 2);
    expect((await fetch(url, { method: "PUT" })).status).toBe(200);
    server.ahead(MINUTE_MS);
    expect((await fetch(url, { method: "PUT" })).status).toBe(403);
  });

  for (const [minutes, fine] of [
    [-16, false],
    [-14, true],
    [14, true],
    [16, false],
  ] as const)
    test(`${fine ? "accepts" : "refuses"} our URL if its clock is ${minutes} minutes ahead`, async () => {
      server.ahead(minutes * MINUTE_MS);
      const put = store.put("skewed", new Uint8Array(1));
      if (fine) await put;
      else expect((await trouble(put)).message).toBe("PUT skewed: 403 AccessDenied");
    });
});

for (const size of [0, 1, 65_536, 3_000_000])
  test(`an object of ${size} bytes is read as it was stored`, async () => {
    const bytes = new Uint8Array(randomBytes(size));
    await store.put(`kept/${size}`, bytes);
    expect(Buffer.compare(await store.get(`kept/${size}`, size), bytes)).toBe(0);
  });

for (const name of ["a b/c+d.bin", "ä/ö", "x(1)!*'.z", "per%cent"])
  test(`a name such as ${name} is signed as it is sent`, async () => {
    await store.put(name, new Uint8Array([1]));
    expect(server.objects.has(name)).toBe(true);
  });

test("a removed object is gone, and removing it again succeeds", async () => {
  await store.put("gone", new Uint8Array([1]));
  await store.remove("gone");
  await store.remove("gone");
  expect(await trouble(store.get("gone", 10))).toMatchObject({ status: 404 });
});

for (const size of [1, 4096, 20_000])
  test(`an object of ${size} bytes is an error if one byte less is allowed, but not if exactly as many are`, async () => {
    await store.put("long", new Uint8Array(size));
    expect((await store.get("long", size)).length).toBe(size);
    expect((await trouble(store.get("long", size - 1))).message).toContain(`longer than ${size - 1} bytes`);
  });

for (const [name, keys] of [
  ["temporary keys", S3_SESSION],
  ["keys whose id has signs", S3_ODD_KEYS],
] as const)
  test(`${name} work`, async () => {
    const other = openObjectStore({ clock: systemClock }, { ...options, ...keys });
    await checkObjectStore(other, "probe");
    expect(server.seen.at(-1)?.query.get("X-Amz-Security-Token")).toBe(
      "sessionToken" in keys ? keys.sessionToken : null,
    );
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
    test(`a ${method} that hangs ends at its limit, with its connection`, async () => {
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

describe("a success that does not come from S3 is an error, because the bytes are deleted elsewhere after a PUT", () => {
  for (const [method, status, headers, body] of [
    ["PUT", "200 OK", "content-type: text/html\r\n", "<h1>We are back soon</h1>"],
    ["PUT", "202 Accepted", "", ""],
    ["PUT", "204 No Content", "", ""],
    ["GET", "204 No Content", "", ""],
    ["GET", "206 Partial Content", "", "half"],
  ] as const)
    test(`${status} to a ${method}${body === "" ? "" : " with a body"}`, async () => {
      const length = status.startsWith("204") ? "" : `content-length: ${body.length}\r\n`;
      server.mood({ kind: "say", bytes: `HTTP/1.1 ${status}\r\n${headers}${length}\r\n${body}` });
      const asking = method === "PUT" ? store.put("x", new Uint8Array(10)) : store.get("x", 10);
      const says = `${method} x: ${status.slice(0, 3)}${method === "PUT" ? " without an ETag" : ""}`;
      expect((await trouble(asking)).message).toBe(says);
    });
});

test("an unreachable server is an error without a status", async () => {
  const nobody = openObjectStore({ clock: systemClock }, { ...options, endpoint: "http://127.0.0.1:9" });
  expect(await trouble(nobody.get("x", 1))).toMatchObject({ status: null });
});

describe("no error shows the URL, because its signature is a secret", () => {
  const HEAD = "HTTP/1.1 200 OK\r\n";
  const SAID = [
    ["no HTTP", "220 mail.example ESMTP\r\n"],
    ["nothing", ""],
    ["a head of megabytes", `${HEAD}x: ${"y".repeat(2_000_000)}\r\n\r\n`],
    ["an invalid chunk", `${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\nabc`],
    ["too little", `${HEAD}content-length: 10\r\n\r\nabc`],
    ["the name of another place", `${HEAD.replace("200 OK", "307 Go")}location: :::\r\n\r\n`],
  ] as const;
  for (const [name, bytes] of SAID)
    test(`if the server says ${name}`, async () => {
      server.mood({ kind: "say", bytes });
      const error = await trouble(store.get("x", 10));
      expect(error.message).toMatch(/^GET x: [\w ]+$/);
      expect(Bun.inspect(error)).not.toContain("X-Amz-Signature");
    });

  for (const endpoint of ["http://127.0.0.1:9", server.endpoint.replace("http", "https")])
    test(`if no server answers at ${endpoint.replace(/\d{4,}/, "a port without TLS")}`, async () => {
      const error = await trouble(
        openObjectStore({ clock: systemClock }, { ...options, endpoint }).remove("x"),
      );
      expect(error.message).toMatch(/^DELETE x: \w+$/);
      expect(Bun.inspect(error)).not.toContain("X-Amz-Signature");
    });

  test("if a token is too long to be sent", async () => {
    const keys = { ...S3_SESSION, sessionToken: "t".repeat(9000) };
    const error = await trouble(openObjectStore({ clock: systemClock }, { ...options, ...keys }).get("x", 1));
    expect(error.message).toBe("GET x: ERR_S3_INVALID_SESSION_TOKEN");
  });
});

const WRONG: readonly [string, Partial<typeof S3_KEYS>, string][] = [
  ["secret", { secretAccessKey: "another" }, "403 SignatureDoesNotMatch"],
  ["key id", { accessKeyId: "NOBODY" }, "403 InvalidAccessKeyId"],
  ["region", { region: "elsewhere" }, "403 AuthorizationQueryParametersError"],
];
for (const [name, keys, says] of WRONG)
  test(`a wrong ${name} is reported by its name, and never shown`, async () => {
    const error = await trouble(
      openObjectStore({ clock: systemClock }, { ...options, ...keys }).put("x", new Uint8Array(1)),
    );
    expect(error.message).toContain(says);
    expect(error.message).not.toContain("another");
  });

describe("from the environment", () => {
  const STRAY = { AWS_SESSION_TOKEN: "stray" };
  const CASES: readonly [name: string, env: object, keys: object, token: string | null][] = [
    [
      "no proxy, place or key",
      {
        HTTP_PROXY: "http://127.0.0.1:9",
        http_proxy: "http://127.0.0.1:9",
        AWS_ENDPOINT: "http://127.0.0.1:9",
        S3_ENDPOINT: "http://127.0.0.1:9",
        AWS_REGION: "stray",
        S3_REGION: "stray",
        AWS_BUCKET: "stray",
        S3_BUCKET: "stray",
        AWS_ACCESS_KEY_ID: "stray",
        AWS_SECRET_ACCESS_KEY: "stray",
        S3_ACCESS_KEY_ID: "stray",
      },
      S3_KEYS,
      null,
    ],
    ["no token is used if none belongs to the key", STRAY, S3_SESSION, S3_SESSION.sessionToken],
    ["no token is used if our own setting is empty", { ...STRAY, S3_SESSION_TOKEN: "" }, S3_KEYS, null],
    ["else a token of AWS, which our settings refuse", STRAY, S3_KEYS, "stray"],
  ];
  for (const [name, env, keys, token] of CASES)
    test(name, async () => {
      const script = `
        import { systemClock } from "${import.meta.dir}/../../src/clock.ts";
        import { openObjectStore } from "${import.meta.dir}/../../src/net/object-store.ts";
        const store = openObjectStore({ clock: systemClock }, ${JSON.stringify({ ...options, ...keys })});
        await store.put("from-child", new Uint8Array(3)).catch((error) => console.error(error.message));`;
      const child = Bun.spawn([process.execPath, "-e", script], {
        env: { PATH: process.env.PATH ?? "", ...env },
        stderr: "pipe",
      });
      const said = token === "stray" ? "PUT from-child: 403 InvalidToken\n" : "";
      expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, said]);
      const seen = server.seen.at(-1);
      expect([seen?.name, seen?.query.get("X-Amz-Security-Token")]).toEqual(["from-child", token]);
    });
});

describe("a check of the store", () => {
  test("a check of the store leaves no object behind if it succeeds", async () => {
    await checkObjectStore(store, "probe");
    expect(server.objects.has("probe")).toBe(false);
  });

  for (const method of ["PUT", "GET", "DELETE"])
    test(`fails with the refused operation if ${method} is refused`, async () => {
      server.mood({ kind: "refuse", status: 403, code: "AccessDenied" }, method);
      const error = await trouble(checkObjectStore(store, "probe"));
      expect(error.message).toBe(`${method} probe: 403 AccessDenied`);
      expect(server.objects.has("probe")).toBe(method === "DELETE");
      server.objects.delete("probe");
    });

  test("a check of the store fails if other bytes are read than were stored", async () => {
    const forgetful = { ...store, get: async () => new Uint8Array(64) };
    expect((await trouble(checkObjectStore(forgetful, "probe"))).message).toContain("other bytes");
  });
});

test("once a store is closed, its open requests fail, and so do later ones", async () => {
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
