import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { FRAGMENT_CHARS } from "../../src/flows/search/highlights.ts";
import { MAX_PIECES } from "../../src/store/search/text-query.ts";
import { inboxService } from "../support/inbox-service.ts";
import { delivered, deliveredRecord } from "../support/mail-in.ts";
import { until } from "../support/poll.ts";

setDefaultTimeout(60_000);

const scene = inboxService();
const FROM = "Shop <shop@in.test>";

async function search(query: Record<string, string>, list = "emails", key?: string) {
  const path = `/v1/${list}?${new URLSearchParams(query)}`;
  return scene.service.call("GET", path, undefined, key === undefined ? {} : { key });
}

async function idsOf(query: Record<string, string>, list = "emails"): Promise<string[]> {
  const { body } = await search(query, list);
  return body.data.map(({ id }: { id: string }) => id);
}

/** Resolves when a message with the words is found. */
async function indexed(id: string, text: string): Promise<void> {
  await until(async () => (await idsOf({ text, limit: "100" })).includes(id));
}

/** The marked words of a found item's fragments, each with its field. */
function marked(item: {
  highlights: { field: string; fragment: string; ranges: { start: number; end: number }[] }[];
}) {
  return item.highlights.flatMap(({ field, fragment, ranges }) =>
    ranges.map(({ start, end }) => `${field}:${fragment.slice(start, end)}`),
  );
}

const SCRIPTS: readonly [text: string, wanted: string, shown: string][] = [
  ["The Überweisung arrived", "UBERWEISUNG", "body:Überweisung"],
  ["今月の請求書を送ります", "請求書", "body:請求書"],
  ["ｶﾞｲﾄﾞを読む", "ガイド", "body:ｶﾞｲﾄﾞ"],
  ["وصلت الفَاتُورَة اليوم", "الفاتورة", "body:الفَاتُورَة"],
  ["Ваша Ёлка готова", "елка", "body:Ёлка"],
  ["주문은 학교에서 왔다", "학교", "body:학교"],
  ["order INV-2026/117-x", "inv-2026/117", "body:INV-2026/117"],
  [
    "write to ana.ruiz+news@shop.example now",
    "ana.ruiz+news@shop.example",
    "body:ana.ruiz+news@shop.example",
  ],
];

describe("text= of messages", () => {
  test.each(SCRIPTS)("a message with “%s” is found by “%s”", async (text, wanted, shown) => {
    const id = await scene.service.send({ from: FROM, subject: "Hi", text });
    await indexed(id, wanted);
    const { body } = await search({ text: wanted });
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual([id]);
    expect(marked(body.data[0])).toEqual([shown]);
    expect(body.indexedSince).toBeUndefined();
  });

  test("finds words of the subject, the html and a file name of one message, each marked", async () => {
    const id = await scene.service.send({
      from: FROM,
      subject: "About a Quokka",
      html: `<p>Some &amp; <b>wom</b>bats</p><!-- numbat -->${"<p>filler</p>".repeat(60)}<p>the wombats end</p>`,
      attachments: [{ filename: "dingo-plan.pdf", content: "eA==", contentType: "application/pdf" }],
    });
    await indexed(id, "quokka wombats dingo");
    const { body } = await search({ text: "wombats quokka dingo-plan" });
    expect(marked(body.data[0])).toEqual([
      "subject:Quokka",
      "body:wombats",
      "body:wombats",
      "fileName:dingo-plan",
    ]);
    const [, first] = body.data[0].highlights;
    expect(first.fragment.startsWith("Some & wombats filler")).toBe(true);
    expect(first.fragment.length).toBeLessThanOrEqual(FRAGMENT_CHARS);
    expect(await idsOf({ text: "numbat" })).toEqual([]);
  });

  test("words of an address must follow each other, other words need not", async () => {
    const id = await scene.service.send({ from: FROM, text: "beaver dam, otter river" });
    await indexed(id, "beaver");
    expect(await idsOf({ text: "river beaver" })).toEqual([id]);
    expect(await idsOf({ text: "otter-river" })).toEqual([id]);
    expect(await idsOf({ text: "river-otter" })).toEqual([]);
    expect(await idsOf({ text: "beaver unicorn" })).toEqual([]);
  });

  test("filters combine with words", async () => {
    const first = await scene.service.send({
      from: FROM,
      to: "leo@one.test",
      text: "combined lynx",
      tags: [{ name: "kind", value: "a" }],
    });
    const box = await scene.newInbox();
    const received = await delivered(scene.service, { to: box.address, body: "combined lynx" });
    await indexed(received, "lynx");
    const rows: [Record<string, string>, string[]][] = [
      [{}, [received, first]],
      [{ direction: "inbound" }, [received]],
      [{ direction: "outbound", tag: "kind:a" }, [first]],
      [{ to: "leo@one.test" }, [first]],
      [{ from: "ada@client.test" }, [received]],
      [{ q: "leo" }, [first]],
      [{ status: "bounced" }, []],
      [{ after: "2020-01-01" }, [received, first]],
      [{ before: "2020-01-01" }, []],
    ];
    for (const [filter, ids] of rows)
      expect([filter, await idsOf({ text: "lynx", ...filter })]).toEqual([filter, ids]);
  });

  test("pages have each message once while mail arrives", async () => {
    const ids: string[] = [];
    for (let at = 0; at < 7; at++)
      ids.unshift(await scene.service.send({ from: FROM, text: `stable ibex ${at}` }));
    await indexed(ids[0] ?? "", "ibex");
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const { body } = await search({ text: "ibex", limit: "2", ...(cursor === null ? {} : { cursor }) });
      seen.push(...body.data.map(({ id }: { id: string }) => id));
      await indexed(await scene.service.send({ from: FROM, text: "another ibex" }), "ibex");
      cursor = body.nextCursor;
      // A place counts the messages of all projects.
      expect(Buffer.from(cursor ?? "", "base64url").toString("latin1")).not.toMatch(/\d{6}/);
    } while (cursor !== null);
    expect(seen).toEqual(ids);
  });

  test("finds the output of a template", async () => {
    const template = { name: "T", subject: "Dear {{ name }}", text: "a {{ animal }} for you" };
    const { body } = await scene.service.call("POST", "/v1/templates", template);
    const id = await scene.service.send({
      from: FROM,
      templateId: body.id,
      data: { name: "Zoe", animal: "platypus" },
    });
    await indexed(id, "platypus zoe");
  });

  test("does not find another project's words", async () => {
    const id = await scene.service.send({ from: FROM, text: "private okapi" });
    await indexed(id, "okapi");
    const account = { key: scene.service.accountKey };
    const other = await scene.service.call("POST", "/v1/senders", { name: "Other" }, account);
    const made = await scene.service.call(
      "POST",
      "/v1/api-keys",
      { name: "k", senderId: other.body.id },
      account,
    );
    const { body } = await search({ text: "okapi" }, "emails", made.body.secret);
    expect(body).toEqual({ data: [], nextCursor: null });
  });

  test("an erased message is found no more", async () => {
    const id = await scene.service.send({ from: FROM, to: "gone@one.test", text: "erased tapir" });
    await indexed(id, "tapir");
    await scene.service.message(id, "delivered");
    await scene.service.call("POST", "/v1/erasures", { email: "gone@one.test" });
    await until(async () => (await idsOf({ text: "tapir" })).length === 0);
  });

  const WRONG: readonly [query: Record<string, string>, message: string][] = [
    [{ text: "a" }, '"text" has no word to search for. A word has at least 2 letters or digits.'],
    [{ text: "🎉 !" }, '"text" has no word to search for. A word has at least 2 letters or digits.'],
    [{ text: "x".repeat(65) }, '"text" has a word of more than 64 letters and digits.'],
    [
      { text: Array.from({ length: MAX_PIECES + 1 }, (_, at) => `w${at}`).join(" ") },
      `"text" has ${MAX_PIECES + 1} words. Search for at most ${MAX_PIECES}.`,
    ],
    [
      { text: "ok ".repeat(86) },
      '"text" must be a string of 1 to 256 characters without NUL, such as "ana".',
    ],
    [
      { text: "ok", wait: "1" },
      '"wait" and "text" exclude each other, because a new message is indexed later. Use "q".',
    ],
  ];
  test.each(WRONG)("refuses %j", async (query, message) => {
    const { status, body } = await search(query);
    expect([status, body.error.message]).toEqual([422, message]);
  });
});

describe("text= of threads", () => {
  test("finds threads by the newest message with the words, each once in its pages", async () => {
    const box = await scene.newInbox();
    const made: { thread: string; message: string }[] = [];
    for (let at = 0; at < 5; at++) {
      const message = scene.newMessageId();
      const headers = [`Message-ID: ${message}`, "Subject: Topic"];
      const record = await deliveredRecord(scene.service, { to: box.address, headers, body: "first marmot" });
      made.push({ thread: record.threadId, message });
    }
    // Later messages with the words in the first two threads, and one without in the third.
    let last = "";
    for (const [at, body] of [
      [0, "again marmot"],
      [1, "a marmot"],
      [2, "nothing"],
    ] as const)
      last = await delivered(scene.service, {
        to: box.address,
        headers: [`In-Reply-To: ${made[at]?.message}`],
        body,
      });
    await indexed(last, "nothing");
    const expected = [1, 0, 4, 3, 2].map((at) => made[at]?.thread ?? "");
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const { body } = await search(
        { text: "marmot", limit: "2", ...(cursor === null ? {} : { cursor }) },
        "threads",
      );
      seen.push(...body.data.map(({ id }: { id: string }) => id));
      // It comes up in a new search, and keeps its place in this one.
      const to = { to: box.address, headers: [`In-Reply-To: ${made[3]?.message}`], body: "late marmot" };
      await indexed(await delivered(scene.service, to), "late marmot");
      cursor = body.nextCursor;
    } while (cursor !== null);
    expect(seen).toEqual(expected);
    const again = await search({ text: "marmot", inboxId: box.id }, "threads");
    expect(again.body.data[0].id).toBe(made[3]?.thread);
    expect(marked(again.body.data[0])).toEqual(["body:marmot"]);
    const { matchedMessageId: id } = again.body.data[0];
    expect((await scene.service.call("GET", `/v1/emails/${id}`)).body.text.trim()).toBe("late marmot");
    expect(await idsOf({ text: "marmot", archived: "true" }, "threads")).toEqual([]);
    expect(await idsOf({ text: "marmot", folder: "spam" }, "threads")).toEqual([]);
    expect((await idsOf({ text: "marmot" }, `inboxes/${box.id}/threads`)).length).toBe(5);
  });
});
