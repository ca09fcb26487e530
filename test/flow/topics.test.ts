import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import { MAX_TOPICS } from "../../src/core/audience/topics.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/core/time/units.ts";
import { JOIN_LINK_MS } from "../../src/flows/audience/double-opt-in.ts";
import { MAX_JOIN_LINKS_TO_ADDRESS } from "../../src/store/audience/join-links.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";
import { turnUntil, type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";

setDefaultTimeout(60_000);

let service: TestService;
let clock: ShiftedClock;
/** Topics of the project: one that all get, and one that only those get who have chosen it. */
let news: string;
let offers: string;
let count = 0;
let reader: string;

beforeAll(async () => {
  clock = shiftedClock();
  service = await startService({}, clock);
  await verifiedDomain(service, "one.test");
  news = await topic({ name: "News", description: "Once a month" });
  offers = await topic({ name: "Offers", defaultSubscribed: false });
});
afterAll(() => service.stop());
beforeEach(() => {
  reader = `reader${++count}@other.example`;
});

const call = (method: string, path: string, body?: unknown) => service.call(method, path, body);
const topic = async (body: object): Promise<string> => (await call("POST", "/v1/topics", body)).body.id;
const send = (topicId: string, more: object = {}) =>
  service.send({ from: { email: "news@one.test" }, to: [{ email: reader }], topicId, ...more });
const contact = async (topics: Record<string, string>): Promise<string> =>
  (await call("POST", "/v1/contacts", { email: reader, topics })).body.id;
const contactNow = async () => (await call("GET", `/v1/contacts?q=${reader}`)).body.data[0];
const reasonOf = async (id: string) => (await service.message(id, "rejected")).recipients[0].reason;

/** Returns the path of the unsubscribe link of a message. */
async function linkOf(id: string): Promise<string> {
  await service.message(id, "delivered");
  const { body } = await call("GET", `/v1/emails/${id}/raw`);
  return /^List-Unsubscribe:\s+<https?:\/\/[^/]+(\/u\/\w+)>/m.exec(body)?.[1] ?? "";
}

describe("a message with a topic", () => {
  test("a message with a topic is bulk mail with one-click unsubscribing, and its record names the topic", async () => {
    const id = await send(news);
    const record = await service.message(id, "delivered");
    expect(record).toMatchObject({ stream: "bulk", topicId: news });
    expect(await linkOf(id)).toStartWith("/u/");
  });

  const choices: [string, "news" | "offers", Record<string, string> | null, "delivered" | "rejected"][] = [
    ["all get by default reaches a stranger", "news", null, "delivered"],
    ["all get by default reaches a contact without a choice", "news", {}, "delivered"],
    ["a contact has left is rejected", "news", { news: "unsubscribed" }, "rejected"],
    ["a contact has chosen reaches it", "news", { news: "subscribed" }, "delivered"],
    ["few get is rejected for a stranger", "offers", null, "rejected"],
    ["few get is rejected for a contact without a choice", "offers", {}, "rejected"],
    ["few get reaches a contact that has chosen it", "offers", { offers: "subscribed" }, "delivered"],
    [
      "a contact has chosen, although it left another, reaches it",
      "offers",
      { news: "unsubscribed", offers: "subscribed" },
      "delivered",
    ],
  ];
  const idOf = (name: string) => (name === "news" ? news : offers);
  test.each(choices)("a topic that %s", async (_name, which, chosen, status) => {
    if (chosen !== null)
      await contact(Object.fromEntries(Object.entries(chosen).map(([name, choice]) => [idOf(name), choice])));
    const id = await send(idOf(which));
    const record = await service.message(id, status);
    expect(record.recipients[0].reason).toBe(status === "rejected" ? "unsubscribed" : null);
  });

  test("a contact that is unsubscribed as a whole gets no topic, whatever it has chosen", async () => {
    const id = await contact({ [offers]: "subscribed" });
    await call("POST", `/v1/contacts/${id}/unsubscribe`);
    expect(await reasonOf(await send(offers))).toBe("unsubscribed");
  });

  test("the choice counts when the message leaves, not when it was posted", async () => {
    const scheduledAt = new Date(clock.now() + HOUR_MS).toISOString();
    const left = await send(news, { scheduledAt });
    const joined = reader;
    reader = `late-${joined}`;
    const stays = await send(news, { scheduledAt });
    await call("POST", "/v1/contacts", { email: joined, topics: { [news]: "unsubscribed" } });
    clock.shift(HOUR_MS + MINUTE_MS);
    expect(await reasonOf(left)).toBe("unsubscribed");
    await service.message(stays, "delivered");
  });

  test("waiting messages of a topic that is deleted are rejected", async () => {
    const going = await topic({ name: "Going" });
    const id = await send(going, { scheduledAt: new Date(clock.now() + HOUR_MS).toISOString() });
    expect((await call("DELETE", `/v1/topics/${going}`)).status).toBe(204);
    clock.shift(HOUR_MS + MINUTE_MS);
    expect(await reasonOf(id)).toBe("unsubscribed");
    const again = { from: "news@one.test", to: reader, subject: "x", text: "x", topicId: going };
    expect((await call("POST", "/v1/emails", again)).body.error).toMatchObject({ param: "topicId" });
  });
});

describe("leaving a topic", () => {
  test("one click leaves the topic of the message alone, is announced once, and stands in the trail", async () => {
    const id = await send(news);
    const link = await linkOf(id);
    for (let times = 0; times < 2; times++)
      expect((await fetch(service.url + link, { method: "POST" })).status).toBe(200);
    const { subscribed, topics, consent } = await contactNow();
    expect({ subscribed, topics }).toEqual({ subscribed: true, topics: { [news]: "unsubscribed" } });
    expect(consent).toEqual([
      { at: expect.any(String), subscribed: false, how: "one_click", ip: "127.0.0.1", topicId: news },
    ]);
    const { events } = (await call("GET", `/v1/emails/${id}`)).body;
    const left = events.filter(({ type }: { type: string }) => type === "unsubscribed");
    expect(left.map(({ data }: { data: unknown }) => data)).toEqual([
      { unsubscribed: { how: "one_click", topicId: news } },
    ]);
    expect(await reasonOf(await send(news))).toBe("unsubscribed");
    await service.message(
      await service.send({
        from: { email: "news@one.test" },
        to: [{ email: reader }],
        unsubscribeLink: true,
      }),
      "delivered",
    );
  });

  test("the link of a message whose topic was deleted unsubscribes as a whole", async () => {
    const going = await topic({ name: "Going" });
    const link = await linkOf(await send(going));
    await call("DELETE", `/v1/topics/${going}`);
    await fetch(service.url + link, { method: "POST" });
    expect((await contactNow()).subscribed).toBe(false);
  });

  test("choices are changed by the API, in a batch too, and each change is an entry of the trail", async () => {
    const id = await contact({ [news]: "subscribed" });
    const patch = async (topics: object) => (await call("PATCH", `/v1/contacts/${id}`, { topics })).body;
    const changed = await patch({ [news]: "unsubscribed", [offers]: "subscribed" });
    expect(changed.topics).toEqual({ [news]: "unsubscribed", [offers]: "subscribed" });
    const trail = (contact: { consent: { topicId?: string; subscribed: boolean }[] }) =>
      contact.consent.map(({ topicId, subscribed }) => [topicId, subscribed]);
    const entries = [
      [undefined, true],
      [news, true],
      [news, false],
      [offers, true],
    ];
    expect(trail(changed)).toEqual(entries);
    expect(trail(await patch({ [offers]: "subscribed" }))).toEqual(entries);
    const batch = (topics: object) =>
      call("POST", "/v1/contacts/batch", { contacts: [{ email: reader, topics }] });
    expect((await batch({ [offers]: "subscribed" })).body.data[0].result).toBe("unchanged");
    expect((await batch({ [offers]: "unsubscribed" })).body.data[0].result).toBe("updated");
    expect(trail(await contactNow())).toEqual([...entries, [offers, false]]);
    expect((await batch({ top_none: "subscribed" })).body.data[0].error.param).toBe("topics.top_none");
  });

  test("an address that left a topic and was erased is unsubscribed when it comes back", async () => {
    await contact({ [news]: "unsubscribed" });
    const { id } = (await call("POST", "/v1/erasures", { email: reader })).body;
    await turnUntil(clock, async () => (await call("GET", `/v1/erasures/${id}`)).body.status === "done");
    await contact({});
    expect(await contactNow()).toMatchObject({ subscribed: false, topics: {} });
  });
});

describe("the page of an unsubscribe link", () => {
  const page = async (link: string, init: RequestInit = {}) => {
    const response = await fetch(service.url + link, init);
    const policy = response.headers.get("content-security-policy");
    const html = await response.text();
    // Nothing counts but the style that the policy names.
    const style = /<style>(.*)<\/style>/s.exec(html)?.[1] ?? "";
    const hash = createHash("sha256").update(style).digest("base64");
    if (response.ok) expect(policy).toStartWith(`default-src 'none'; style-src 'sha256-${hash}'; `);
    return { status: response.status, html };
  };
  const press = (link: string, query: string) => page(`${link}?by=page&${query}`, { method: "POST" });
  const german = { headers: { "accept-language": "xx, de-AT;q=0.9, en;q=0.8" } };

  test("the page is in the reader's language, shows the visible topics, and changes nothing", async () => {
    await topic({ name: "Inner <circle>", visible: false });
    const link = await linkOf(await send(news));
    const { html } = await page(link, german);
    expect(html).toContain('<html lang="de">');
    expect(html).toContain("<h1>E-Mail-Einstellungen</h1>");
    expect(html).toContain("<dt>News</dt><dd>Once a month</dd><dd>Abonniert</dd>");
    expect(html).toContain("<dt>Offers</dt><dd>Nicht abonniert</dd>");
    expect(html).not.toContain("circle");
    expect(html.indexOf("News")).toBeLessThan(html.indexOf("Offers"));
    expect(await contactNow()).toBeUndefined();
  });

  test("the topic of the message is on the page even if it is not visible, first and escaped", async () => {
    const hidden = await topic({ name: "Only <you>", visible: false });
    const { html } = await page(await linkOf(await send(hidden)));
    expect(html).toContain("<dl><div><dt>Only &lt;you&gt;</dt>");
  });

  test("a reader leaves one topic, joins another, leaves everything and comes back, each with an entry", async () => {
    const link = await linkOf(await send(news));
    expect((await press(link, `topic=${news}&choice=unsubscribed`)).html).toContain("<h1>Unsubscribed</h1>");
    expect((await press(link, `topic=${offers}&choice=subscribed`)).html).toContain(
      "Your choice has been saved.",
    );
    expect((await contactNow()).topics).toEqual({ [news]: "unsubscribed", [offers]: "subscribed" });
    await service.message(await send(offers), "delivered");
    const all = await press(link, "topic=all&choice=unsubscribed");
    expect(all.html).toContain("You get none of these messages.");
    expect(all.html).not.toContain("<dl>");
    expect(await reasonOf(await send(offers))).toBe("unsubscribed");
    await press(link, "topic=all&choice=subscribed");
    const { subscribed, consent } = await contactNow();
    expect(subscribed).toBe(true);
    expect(consent).toMatchObject([
      { subscribed: false, how: "page", ip: "127.0.0.1", topicId: news },
      { subscribed: true, how: "page", ip: "127.0.0.1", topicId: offers },
      { subscribed: false, how: "page", ip: "127.0.0.1" },
      { subscribed: true, how: "page", ip: "127.0.0.1" },
    ]);
    await service.message(await send(offers), "delivered");
  });

  test("a button of a page from before there were topics leaves what one click leaves", async () => {
    const link = await linkOf(await send(news));
    await page(`${link}?by=page`, { method: "POST" });
    expect((await contactNow()).topics).toEqual({ [news]: "unsubscribed" });
  });

  test("a topic that is not on the page is refused", async () => {
    const hidden = await topic({ name: "Hidden", visible: false });
    const link = await linkOf(await send(news));
    for (const id of [hidden, "top_none"])
      expect((await press(link, `topic=${id}&choice=subscribed`)).status).toBe(422);
    expect(await contactNow()).toBeUndefined();
  });

  test("a template gives the page its heading and words, in the reader's language if there is one for it", async () => {
    const link = await linkOf(await send(news));
    const words = { subject: "Your <mail>", text: "First.\n\nSecond <b>." };
    await call("POST", "/v1/templates", { name: "Page", slug: "unsubscribe-page", ...words });
    expect((await page(link, german)).html).toContain(
      "<h1>Your &lt;mail&gt;</h1><p>First.</p><p>Second &lt;b&gt;.</p><dl>",
    );
    const mine = { name: "Seite", slug: "unsubscribe-page-de", subject: "Ihre Post", text: "Hallo." };
    await call("POST", "/v1/templates", mine);
    expect((await page(link, german)).html).toContain("<h1>Ihre Post</h1><p>Hallo.</p><dl>");
    expect((await page(link)).html).toContain("<h1>Your &lt;mail&gt;</h1>");
  });

  test("a template gives the page the words of its buttons and sentences, line by line", async () => {
    const link = await linkOf(await send(news));
    const text =
      "leaveAll: No more <mail>\nunknown: x\njoin:\nsubscribed: You get it: always\nconstructor: x";
    await call("POST", "/v1/templates", {
      name: "Words",
      slug: "unsubscribe-page-words",
      subject: "Words",
      text,
    });
    const { html } = await page(link);
    expect(html).toContain(">No more &lt;mail&gt;</button>");
    expect(html).toContain("<dd>You get it: always</dd>");
    expect(html).toContain(">Subscribe</button>");
    const words = "leaveAll: Nichts mehr";
    await call("POST", "/v1/templates", {
      name: "Wörter",
      slug: "unsubscribe-page-words-de",
      subject: "Wörter",
      text: words,
    });
    expect((await page(link, german)).html).toContain(">Nichts mehr</button>");
  });
});

describe("/v1/topics", () => {
  test("a topic is created, changed, listed, and deleted with the choices of the contacts", async () => {
    const { status, body: made } = await call("POST", "/v1/topics", { name: "Tips" });
    expect([status, made]).toEqual([
      201,
      {
        id: expect.stringMatching(/^top_/),
        name: "Tips",
        description: "",
        defaultSubscribed: true,
        visible: true,
        doubleOptIn: false,
        createdAt: expect.any(String),
        updatedAt: made.createdAt,
      },
    ]);
    const path = `/v1/topics/${made.id}`;
    const { body: changed } = await call("PATCH", path, { visible: false, description: "Rarely" });
    expect(changed).toMatchObject({ name: "Tips", description: "Rarely", visible: false });
    expect((await call("GET", path)).body).toEqual(changed);
    expect((await call("GET", "/v1/topics?limit=1")).body.data).toEqual([changed]);
    const id = await contact({ [made.id]: "unsubscribed" });
    expect((await call("DELETE", path)).status).toBe(204);
    expect((await call("GET", path)).status).toBe(404);
    clock.shift(2 * MINUTE_MS);
    await turnUntil(
      clock,
      async () => Object.keys((await call("GET", `/v1/contacts/${id}`)).body.topics).length === 0,
    );
  });

  test("a project has at most 50 topics", async () => {
    const { body } = await service.call("POST", "/v1/senders", { name: "full" }, { key: service.accountKey });
    const headers = { "x-service-product": body.externalId };
    const create = (at: number) =>
      service.call("POST", "/v1/topics", { name: `t${at}` }, { key: service.accountKey, headers });
    for (let at = 0; at < MAX_TOPICS; at++) expect((await create(at)).status).toBe(201);
    expect((await create(MAX_TOPICS)).body.error.code).toBe("quota_exceeded");
  });
});

describe("a topic with double opt-in", () => {
  let letters: string;
  beforeAll(async () => {
    letters = await topic({ name: "Letters <b>", doubleOptIn: true });
  });
  const links = async (): Promise<string[]> => {
    const { body } = await call("GET", `/v1/emails?to=${encodeURIComponent(reader)}&limit=10`);
    const mails = body.data.filter(
      ({ subject }: { subject: string }) => subject === "Confirm your subscription",
    );
    return Promise.all(
      mails.map(async ({ id }: { id: string }) => {
        const { text } = (await call("GET", `/v1/emails/${id}`)).body;
        return /\/j\/[\w.~-]+/.exec(text)?.[0] ?? "";
      }),
    );
  };
  const open = (method: string, link: string) => service.call(method, link, undefined, { key: "none" });
  const choice = async () => (await contactNow()).topics[letters];

  test("a person joins by a POST of the mailed link alone, and the trail says how, when and from where", async () => {
    const id = await contact({ [letters]: "subscribed" });
    expect(await choice()).toBe("pending");
    expect(await reasonOf(await send(letters))).toBe("unsubscribed");
    const [link = ""] = await links();
    for (let scan = 0; scan < 2; scan++)
      expect((await open("GET", link)).body).toContain("<dt>Letters &lt;b&gt;</dt>");
    expect(await choice()).toBe("pending");
    for (let time = 0; time < 2; time++) expect((await open("POST", link)).status).toBe(200);
    expect(await choice()).toBe("subscribed");
    const { consent } = await contactNow();
    expect(
      consent.map(({ how, subscribed, topicId, ip }: never) => [how, subscribed, topicId, typeof ip]),
    ).toEqual([
      ["api", true, undefined, "undefined"],
      ["api", false, letters, "undefined"],
      ["double_opt_in", true, letters, "string"],
    ]);
    await service.message(await send(letters), "delivered");
    await call("PATCH", `/v1/contacts/${id}`, { topics: { [letters]: "subscribed" } });
    expect([await choice(), (await links()).length]).toEqual(["subscribed", 1]);
  });

  test("a link that is forged, too old, or of a person who has left since does nothing", async () => {
    const id = await contact({ [letters]: "subscribed" });
    const [link = ""] = await links();
    for (const forged of [`${link}x`, "/j/x", `/j/${"x".repeat(1001)}`, link.replace("/j/", "/f/")])
      expect([forged, (await open("POST", forged)).status]).toEqual([forged, 404]);
    await call("PATCH", `/v1/contacts/${id}`, { topics: { [letters]: "unsubscribed" } });
    expect((await open("POST", link)).status).toBe(404);
    expect(await choice()).toBe("unsubscribed");
    await call("PATCH", `/v1/contacts/${id}`, { topics: { [letters]: "subscribed" } });
    clock.shift(JOIN_LINK_MS);
    expect((await open("POST", link)).status).toBe(404);
    expect(await choice()).toBe("pending");
  });

  test("an address gets three links within a day, even if its contact is deleted in between", async () => {
    for (let link = 0; link < MAX_JOIN_LINKS_TO_ADDRESS; link++)
      await call("DELETE", `/v1/contacts/${await contact({ [letters]: "subscribed" })}`);
    const body = { email: reader, topics: { [letters]: "subscribed" } };
    const refused = await call("POST", "/v1/contacts", body);
    expect([refused.status, refused.body.error.type]).toEqual([429, "rate_limited"]);
    expect(await contactNow()).toBeUndefined();
    expect(await links()).toHaveLength(MAX_JOIN_LINKS_TO_ADDRESS);
    clock.shift(DAY_MS + 1);
    expect((await call("POST", "/v1/contacts", body)).status).toBe(201);
  });

  test("the link is mailed in the language of the contact's property", async () => {
    await call("POST", "/v1/contact-properties", { name: "locale", type: "string" });
    const body = { email: reader, topics: { [letters]: "subscribed" }, properties: { locale: "de_AT" } };
    expect((await call("POST", "/v1/contacts", body)).status).toBe(201);
    const { data } = (await call("GET", `/v1/emails?to=${encodeURIComponent(reader)}`)).body;
    expect(data[0].subject).toBe("Bestätigen Sie Ihr Abonnement");
    const { text } = (await call("GET", `/v1/emails/${data[0].id}`)).body;
    expect(text).toMatch(/möchten Nachrichten von .+ erhalten:\n\n- Letters b\n\n[^{}]+\/j\/[^{}]+ 3 Tage/);
  });

  test("a contact that is there already gets no further link by another POST", async () => {
    await contact({ [letters]: "subscribed" });
    const again = await call("POST", "/v1/contacts", { email: reader, topics: { [letters]: "subscribed" } });
    expect([again.status, again.body.error.code]).toEqual([409, "duplicate"]);
    expect(await links()).toHaveLength(1);
  });

  test("a batch subscribes nobody, and a suppressed address gets no link", async () => {
    const item = { email: reader, topics: { [letters]: "subscribed" } };
    const { body } = await call("POST", "/v1/contacts/batch", { contacts: [item] });
    expect(body.data[0].error).toMatchObject({ param: `topics.${letters}` });
    await call("POST", "/v1/suppressions", { email: reader });
    expect((await call("POST", "/v1/contacts", item)).status).toBe(422);
    expect(await links()).toEqual([]);
  });

  test("a topic that people join by a link cannot be one that all get", async () => {
    const both = { name: "Both", doubleOptIn: true, defaultSubscribed: true };
    expect((await call("POST", "/v1/topics", both)).body.error.param).toBe("defaultSubscribed");
    expect((await call("PATCH", `/v1/topics/${news}`, { doubleOptIn: true })).status).toBe(422);
    expect((await call("GET", `/v1/topics/${letters}`)).body).toMatchObject({
      doubleOptIn: true,
      defaultSubscribed: false,
    });
  });
});
