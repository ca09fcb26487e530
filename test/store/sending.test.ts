import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { reservedBudget } from "../../src/store/contents/memory-budget.ts";
import { bodyBytes } from "../../src/store/contents/message-body.ts";
import type { Statement, Value } from "../../src/store/engine/client.ts";
import { findOutgoing } from "../../src/store/messages/outgoing.ts";
import { insertProject, type Project } from "../../src/store/projects/projects.ts";
import {
  installationKey,
  ownInbox,
  type SendFacts,
  type SendQuestion,
  sendFacts,
  signingKeys,
} from "../../src/store/messages/sending.ts";
import { testSender } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { reason } from "../support/reason.ts";

const NOW = 1_750_000_000_000;
const DOMAIN = "shop.test";
const INBOX = `in@${DOMAIN}`;
const BODY = bodyBytes({ html: "<p>", text: null });

let database: TestDatabase;
/** `stranger` has the same domain name in its own account. */
const home = testSender("acc_1", "home", NOW);
const sibling = testSender("acc_1", "sibling", NOW);
const stranger = testSender("acc_2", "stranger", NOW);

function insert(table: string, row: Record<string, Value>): Statement {
  const columns = Object.keys(row);
  return {
    sql: `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
    args: Object.values(row),
  };
}

/** A project with one row of everything that a send reads, distinguished by `mark`. */
function project(sender: Project, mark: string, status: "verified" | "pending"): Statement[] {
  const owned = { sender_id: sender.id, created_at: NOW };
  const hook = { ...owned, url: "https://hook.test", secret: "s", updated_at: NOW };
  const suppressed = (email: string, expiresAt: number | null): Statement => {
    const entry = { ...owned, id: `sup_${mark}_${email}`, email, reason: "manual", expires_at: expiresAt };
    return insert("suppressions", entry);
  };
  const message = (direction: string): Statement[] => {
    const id = `msg_${mark}_${direction}`;
    const fields = {
      direction,
      status: "queued",
      from_email: INBOX,
      from_name: null,
      subject: "",
      to_list: "[]",
    };
    return [
      insert("messages", { ...owned, ...fields, id }),
      insert("contents", {
        ...owned,
        key: Buffer.from(id),
        refs: 1,
        size: BODY.length,
        encoding: "plain",
        stored_in: "row",
        created_at: NOW,
        bytes: BODY,
      }),
      insert("message_content", { message_id: id, body: Buffer.from(id), headers: `{"X-Of":"${mark}"}` }),
    ];
  };
  return [
    insertProject(sender),
    insert("domains", { ...owned, id: `dom_${mark}`, account_id: sender.accountId, name: DOMAIN, status }),
    insert("inboxes", {
      ...owned,
      id: `inb_${mark}`,
      domain_id: `dom_${mark}`,
      address: INBOX,
      type: "agent",
    }),
    ...keysOf(mark, "retired"),
    ...keysOf(mark, "active"),
    suppressed(`${mark}@gone.test`, null),
    suppressed(`${mark}@soon.test`, NOW + 1),
    suppressed(`${mark}@back.test`, NOW),
    ...[0, 1].map((subscribed) => {
      const email = `${mark}${subscribed}@contact.test`;
      return insert("contacts", {
        ...owned,
        id: email,
        email,
        email_key: email,
        subscribed,
        updated_at: NOW,
      });
    }),
    insert("webhooks", { ...hook, id: `whk_${mark}`, enabled: 1, event_types: '["sent"]' }),
    insert("webhooks", { ...hook, id: `whk_${mark}_off`, enabled: 0, event_types: "[]" }),
    ...message("outbound"),
    ...message("inbound"),
  ];
}

function keysOf(mark: string, status: string): Statement[] {
  const names = { token: `${mark}-${status}`, domain_id: `dom_${mark}`, selector: `s-${status}` };
  const key = { algorithm: "rsa", public_key: "p", private_key: "k" };
  return [insert("dkim_keys", { ...names, ...key, status, created_at: NOW })];
}

beforeAll(async () => {
  database = await testDatabase();
  const account = (id: string) =>
    insert("accounts", { id, name: "a", owner_email: "o@x.test", created_at: 1 });
  await database.db.write([
    account("acc_1"),
    account("acc_2"),
    ...project(home, "home", "verified"),
    insertProject(sibling),
    ...project(stranger, "stranger", "pending"),
  ]);
});
afterAll(() => database.remove());

const QUESTION: SendQuestion = { fromDomain: DOMAIN, inboxAddress: INBOX, keys: [], unsubscribeLink: true };

function ask(sender: Project, question: Partial<SendQuestion> = {}): Promise<SendFacts> {
  return sendFacts(database.db, sender, { ...QUESTION, ...question }, NOW);
}

describe("the facts that a send reads", () => {
  const every = ["home", "stranger"].flatMap((mark) => [
    ...["gone", "soon", "back"].map((name) => `${mark}@${name}.test`),
    ...[0, 1].map((subscribed) => `${mark}${subscribed}@contact.test`),
  ]);

  test("the facts that a send reads come from the project's own rows", async () => {
    expect(await ask(home, { keys: every })).toEqual({
      verified: true,
      routedBy: null,
      inbox: { id: "inb_home", address: QUESTION.inboxAddress },
      suppressed: new Set(["home@gone.test", "home@soon.test"]),
      unsubscribed: new Set(["home0@contact.test"]),
      webhooks: [{ webhookId: "whk_home", eventTypes: ["sent"] }],
    });
  });

  test("include an unverified domain, and its inbox", async () => {
    expect(await ask(stranger, { keys: every })).toMatchObject({
      verified: false,
      inbox: { id: "inb_stranger" },
    });
  });

  test("the facts that a send reads are empty for a project that has nothing, in an account that has everything", async () => {
    expect(await ask(sibling, { keys: every })).toEqual({
      verified: false,
      routedBy: null,
      inbox: null,
      suppressed: new Set(),
      unsubscribed: new Set(),
      webhooks: [],
    });
  });

  test.each([
    [[], 0],
    [["home@gone.test"], 1],
    [["home@back.test"], 0],
    [["stranger@gone.test"], 0],
    [["home@gone.test", "home@soon.test"], 2],
  ])("of the recipients %j suppresses %i", async (keys, count) => {
    expect((await ask(home, { keys })).suppressed.size).toBe(count);
  });

  test("the facts that a send reads leave unsubscribed contacts out unless requested", async () => {
    const keys = ["home0@contact.test"];
    expect((await ask(home, { keys })).unsubscribed).toEqual(new Set(keys));
    expect((await ask(home, { keys, unsubscribeLink: false })).unsubscribed).toEqual(new Set());
  });

  test.each([{ fromDomain: "other.test" }, { inboxAddress: `else@${DOMAIN}` }])(
    "the facts that a send reads contain no inbox for %j",
    async (question) => {
      expect((await ask(home, question)).inbox).toBeNull();
    },
  );
});

describe("a project's rows, if another account has a domain of the same name", () => {
  test.each([
    ["home", home, "home-active"],
    ["stranger", stranger, "stranger-active"],
    ["sibling", sibling, undefined],
  ])("%s signs only with its own key", async (_, sender, token) => {
    expect((await signingKeys(database.db, sender.id, DOMAIN))[0]?.token).toBe(token);
  });

  test.each([
    ["home", home, INBOX, "inb_home"],
    ["stranger", stranger, INBOX, "inb_stranger"],
    ["sibling", sibling, INBOX, undefined],
    ["home", home, `else@${DOMAIN}`, undefined],
  ])("%s finds only its own inbox", async (_, sender, address, id) => {
    expect((await ownInbox(database.db, sender.id, address))?.id).toBe(id);
  });

  test("the installation's own key is the active one", async () => {
    await database.db.write(
      ["retired", "active"].flatMap((status) =>
        keysOf("installation", status).map(({ sql, args }) => ({
          sql,
          args: args.map((value) => (value === "dom_installation" ? null : value)),
        })),
      ),
    );
    expect((await installationKey(database.db))?.token).toBe("installation-active");
  });
});

describe("an outgoing message", () => {
  test("an outgoing message has its content and the active keys of its project's domain", async () => {
    expect(await findOutgoing(database, home.id, "msg_home_outbound", reservedBudget())).toMatchObject({
      from: { email: INBOX },
      html: "<p>",
      text: null,
      headers: { "X-Of": "home" },
      hasAttachments: false,
      rendered: false,
      keys: [{ token: "home-active", createdAt: NOW }],
    });
  });

  test.each([
    ["another project's", home, "msg_stranger_outbound"],
    ["a sibling project's", sibling, "msg_home_outbound"],
    ["an inbound one", home, "msg_home_inbound"],
  ])("an outgoing message is not one: %s", async (_, sender, id) => {
    expect(await findOutgoing(database, sender.id, id, reservedBudget())).toBeNull();
  });

  test("an outgoing message is not sent empty if the content of its body is gone", async () => {
    const id = "msg_home_outbound";
    const name = (body: Uint8Array) =>
      database.db.write([
        { sql: "UPDATE message_content SET body = ? WHERE message_id = ?", args: [body, id] },
      ]);
    await name(Buffer.from("of nothing"));
    expect(String(await reason(findOutgoing(database, home.id, id, reservedBudget())))).toContain("gone");
    await name(Buffer.from(id));
    expect(await findOutgoing(database, home.id, id, reservedBudget())).toMatchObject({ html: "<p>" });
  });

  test("an outgoing message has no key once its domain is deleted", async () => {
    const id = "msg_stranger_outbound";
    await database.db.write([
      { sql: "DELETE FROM inboxes WHERE domain_id = 'dom_stranger'", args: [] },
      { sql: "DELETE FROM domains WHERE id = 'dom_stranger'", args: [] },
    ]);
    expect((await findOutgoing(database, stranger.id, id, reservedBudget()))?.keys).toEqual([]);
  });
});
