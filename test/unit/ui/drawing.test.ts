import { describe, expect, test } from "bun:test";
import { uiDraw } from "../../../src/wiring/ui/files.ts";

const draw = uiDraw();
type Sheet = Parameters<typeof draw>[0] & { me: object };
const LIST = "/v1/emails?limit=50";

const key = { id: "key_1", name: "All", scopes: [], senderId: null };
const project = (id: string) => ({ id, name: `Name of ${id}`, externalId: id, suspendedAt: null });

const me = {
  account: { id: "acc_1", ownerEmail: "ana@example.com" },
  service: { domain: "mail.test", delivery: "capture" },
  key,
  project: null,
  limits: {},
};

/** Returns what a list of messages is drawn of. */
function sheet(changes: Partial<Sheet> = {}): Sheet {
  return {
    program: "postrider",
    me,
    projects: [project("one"), project("two")],
    project: "one",
    answers: { [LIST]: { data: [], nextCursor: null } },
    origin: "http://localhost:3000",
    path: "/messages",
    search: "",
    cookie: "",
    ...changes,
  };
}

/** Returns answers with one message of that subject. */
function listOf(subject: string): Sheet["answers"] {
  const message = {
    id: "msg_1",
    status: "delivered",
    direction: "outbound",
    awaitingApproval: false,
    from: "ana@example.com",
    to: ["ben@example.com"],
    subject,
    createdAt: "2026-03-05T13:03:07.120Z",
  };
  return { [LIST]: { data: [message], nextCursor: null } };
}

describe("a page that the server draws", () => {
  test("a page that the server draws shows what the answers say, and hands it to the browser", async () => {
    const { html, values } = await draw(sheet({ answers: listOf("Hello") }));
    expect(html).toContain("Hello");
    expect(html).toContain("ben@example.com");
    expect(values["pages /v1/emails"]).toMatchObject({ rows: [{ subject: "Hello" }], next: null });
  });

  test("a page that the server draws shows the text of a message as text, whatever it contains", async () => {
    const subject = `</a><script>alert(1)</script><img src=x onerror="alert(2)"> & 'more'`;
    const { html } = await draw(sheet({ answers: listOf(subject) }));
    expect(html).not.toContain("<script");
    expect(html).not.toContain("<img");
    expect(html).toContain("&lt;/a>&lt;script>alert(1)&lt;/script>");
  });

  test("puts a text of the address into attributes as text", async () => {
    const answers = { "/v1/emails?q=%22%3E%3Cb%3E&limit=50": { data: [], nextCursor: null } };
    const { html } = await draw(sheet({ search: "?q=%22%3E%3Cb%3E", answers }));
    expect(html).toContain('value="&quot;>&lt;b>"');
    expect(html).not.toContain("<b>");
  });

  test("a page that the server draws has no style attributes, which the page's policy forbids", async () => {
    expect((await draw(sheet({ answers: listOf("Hello") }))).html).not.toMatch(/<[^>]* style=/);
  });

  test("a page that the server draws shows the project that the browser has chosen, and its answers alone", async () => {
    const cookie = "other=1; postrider.project=acc_1%20two";
    const chosen = await draw(sheet({ cookie, project: "two", answers: listOf("Of two") }));
    expect(chosen.html).toContain('<option selected value="two" dir="auto">');
    expect(chosen.html).toContain("Of two");
    const foreign = await draw(sheet({ cookie: "postrider.project=acc_2%20two" }));
    expect(foreign.html).toContain('<option selected value="one" dir="auto">');
  });

  test("a page that the server draws is not drawn if the browser has chosen a project that is not listed", async () => {
    expect((await draw(sheet({ search: "?project=three" }))).html).toBe("");
  });

  test("a page that the server draws leaves out what it has no answer for", async () => {
    const { html, values } = await draw(sheet({ path: "/domains", answers: {} }));
    expect(html).toContain("<h1>Domains</h1>");
    expect(values).toEqual({});
  });

  test("a page that the server draws has nothing of a page that is drawn at the same time, or was drawn before", async () => {
    const drawn = await Promise.all(
      ["First", "Second", "Third"].map((name) => draw(sheet({ answers: listOf(name) }))),
    );
    for (const [at, { html }] of drawn.entries())
      expect([...new Set(html.match(/First|Second|Third/g))]).toEqual([
        ["First", "Second", "Third"][at] ?? "",
      ]);
    const { html } = await draw(sheet({ answers: {} }));
    expect(html).not.toContain("Third");
  });

  test("a page that the server draws has nothing of another project that is drawn in between", async () => {
    const pages = Array.from({ length: 20 }, (_, at) => {
      const project = at % 2 === 0 ? "one" : "two";
      const cookie = `postrider.project=acc_1%20${project}; postrider.theme=${at % 2 === 0 ? "dark" : "light"}`;
      return { project, drawing: draw(sheet({ project, cookie, answers: listOf(`Mail of ${project}`) })) };
    });
    for (const { project, drawing } of pages) {
      const { html, values } = await drawing;
      const other = project === "one" ? "two" : "one";
      expect(`${html}${JSON.stringify(values)}`).not.toContain(`Mail of ${other}`);
      expect(html).toContain(`Mail of ${project}`);
      expect(html).toContain(`<option selected value="${project}" dir="auto">`);
      expect(html).toContain(`<option selected value="${project === "one" ? "dark" : "light"}">`);
    }
  });

  test("a page that the server draws shows the html of a message as on a light page, whatever the colours of the browser", async () => {
    const message = {
      id: "msg_1",
      status: "delivered",
      direction: "outbound",
      subject: "Styled",
      awaitingApproval: false,
      addresses: { from: { email: "ana@example.com" }, to: [], cc: [], bcc: [], replyTo: [] },
      headers: {},
      html: "<p>Hi</p>",
      text: null,
      attachments: [],
      tags: [],
      recipients: [],
      events: [],
      createdAt: "2026-03-05T13:03:07.120Z",
      sentAt: null,
      scheduledAt: null,
      size: 10,
      metadata: {},
    };
    const page = (cookie: string) => {
      const answers = { ...listOf("Styled"), "/v1/emails/msg_1": message };
      return draw(sheet({ path: "/messages/msg_1", answers, cookie }));
    };
    const own = await page("");
    expect(own.html).toContain(">Styled</h2>");
    expect(own.html).toContain("theme=light");
    expect((await page("postrider.theme=dark")).html).toContain("theme=light");
    expect((await page("")).html).toBe(own.html);
    expect((await draw(sheet({ answers: listOf("After it") }))).html).toContain("After it");
  });

  test("a faulty page does not keep the server from drawing the next one", async () => {
    const answers = { [LIST]: { data: [null], nextCursor: null } };
    await expect(draw(sheet({ answers }))).rejects.toThrow();
    expect((await draw(sheet({ answers: listOf("After it") }))).html).toContain("After it");
  });
});
