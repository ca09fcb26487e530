import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Worker } from "bullmq";
import Database from "libsql";
import { openReader } from "../../src/mail/decoding/mime-part.ts";
import { BackoffWorker, RETRY_MS } from "../../src/queue/bullmq.ts";
import { referencePage, referencePolicy } from "../../src/http/openapi/reference-page.ts";
import { execOffLoop, syncOffLoop } from "../../src/store/sql/off-loop.ts";
import { newFolder } from "../support/folder.ts";

// Parts of packages that their declarations omit or that are not meant for us. An upgrade that changes them fails here first.

describe("libsql", () => {
  test("commits a transaction of a blocking connection on another thread", async () => {
    const path = join(newFolder("off-loop"), "a.db");
    const database = new Database(path);
    database.exec("CREATE TABLE notes (id INTEGER)");
    database.exec("BEGIN IMMEDIATE");
    database.exec("INSERT INTO notes VALUES (1)");
    await execOffLoop(database, "COMMIT");
    expect(database.inTransaction).toBe(false);
    const other = new Database(path);
    expect(other.prepare("SELECT count(*) AS notes FROM notes").get()).toMatchObject({ notes: 1 });
    other.close();
    database.close();
  });

  test("rejects with SQLite's code what fails on another thread", async () => {
    const database = new Database(":memory:");
    await expect(execOffLoop(database, "COMMIT")).rejects.toMatchObject({ code: "SQLITE_ERROR" });
    database.close();
  });

  test("libsql refuses to sync a database without a primary", async () => {
    const database = new Database(":memory:");
    await expect(syncOffLoop(database)).rejects.toThrow(/sync/i);
    database.close();
  });
});

describe("bullmq", () => {
  test("asks for jobs by a method of its worker, and waits by another", () => {
    expect(Object.getOwnPropertyNames(Worker.prototype)).toContain("moveToActive");
    expect(Object.getOwnPropertyNames(Worker.prototype)).toContain("delay");
  });

  test("a worker that was refused a job waits before it passes on the refusal", async () => {
    const refusal = new Error("OOM command not allowed");
    const waits: number[] = [];
    const worker = {
      backend: { moveToActive: () => Promise.reject(refusal) },
      delay: (milliseconds: number) => Promise.resolve(waits.push(milliseconds)),
    };
    const asked: Promise<unknown> = Reflect.get(BackoffWorker.prototype, "moveToActive").call(
      worker,
      "token",
    );
    await expect(asked).rejects.toBe(refusal);
    expect(waits).toEqual([RETRY_MS]);
  });
});

describe("postal-mime", () => {
  const READER = {
    root: "object",
    currentNode: "object",
    boundaries: "object",
    forceRfc822Attachments: "boolean",
    textMap: "object",
    textTypes: "object",
    attachments: "object",
    processLine: "function",
    finalize: "function",
    collectNode: "function",
    collectAttachment: "function",
    renderTextContent: "function",
  };
  const PART = {
    state: "string",
    contentType: "object",
    contentDisposition: "object",
    contentTransferEncoding: "object",
    headerLines: "object",
    childNodes: "object",
    feed: "function",
    setupContentDecoder: "function",
    getTextContent: "function",
  };

  function kindsOf(value: object, names: readonly string[]): Record<string, string> {
    return Object.fromEntries(names.map((name) => [name, typeof Reflect.get(value, name)]));
  }

  test("postal-mime keeps the state and the steps that we read mail with", () => {
    expect(kindsOf(openReader(), Object.keys(READER))).toEqual(READER);
    expect(kindsOf(openReader().root, Object.keys(PART))).toEqual(PART);
  });

  test("decodes a part by the decoder that its encoding sets up", async () => {
    const { root } = openReader();
    root.setupContentDecoder("base64");
    root.contentDecoder?.update(new TextEncoder().encode("aGVsbG8="));
    const content = await root.contentDecoder?.finalize();
    expect(new TextDecoder().decode(content)).toBe("hello");
  });
});

describe("@elysiajs/swagger", () => {
  test("draws a page with one inline script of white space, which names our document and our script", async () => {
    const html = await referencePage("/docs/scalar-1.js");
    const inline = [...html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([^<]*)<\/script>/g)];
    expect(inline.map(([, text = ""]) => text.trim())).toEqual([""]);
    expect(html).toContain('src="/docs/scalar-1.js"');
    expect(html).toContain("/docs/json");
    expect(referencePolicy(html)).toMatch(/script-src 'self' 'sha256-[A-Za-z0-9+/=]{44}'/);
  });
});
