import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Statement, Value } from "../../src/store/engine/client.ts";
import { findOutgoing } from "../../src/store/outgoing.ts";
import { insertSender, type Sender } from "../../src/store/senders.ts";
import {
  installationKey,
  ownInbox,
  type SendFacts,
  type SendQuestion,
  sendFacts,
  signingKey,
} from "../../src/store/sending.ts";
import { testSender } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { reason } from "../support/reason.ts";

const NOW = 1_750_000_000_000;
const DOMAIN = "shop.test";
const INBOX = `in@${DOMAIN}`;
const BODY = Buffer.from(JSON.stringify({ html: "<p>", text: null }));

let database: TestDatabase;
/** `stranger` has the same domain name in an account of its own. */
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

/** A project with one of everything that a send asks about, told apart by `mark`. */
function project(sender: Sender, mark: string, status: "verified" | "pending"): Statement[] {
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
      insert("message_content", { message_id: id, inline_body: BODY, headers: `{"X-Of":"${mark}"}` }),
    ];
  };
  return [
    insertSender(sender),
    insert("domains", { ...owned, id: `dom_${mark}`, account_id: sender.accountId, name: DOMAIN, status }),
    insert("inboxes", {
      ...owned,
      id: `inb_${mark}`,
      domain_id: `dom_${mark}`,
      address: INBOX,
      type: "agent",
    }),
    ...[...keysOf(mark, "retired"), ...keysOf(mark, "active")],
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
  return [insert("dkim_keys", { ...names, status, public_key: "p", private_key: "k", created_at: NOW })];
}

beforeAll(async () => {
  database = await testDatabase();
  const account = (id: string) =>
    insert("accounts", { id, name: "a", owner_email: "o@x.test", created_at: 1 });
  await database.db.write([
    account("acc_1"),
    account("acc_2"),
    ...project(home, "home", "verified"),
    insertSender(sibling),
    ...project(stranger, "stranger", "pending"),
  ]);
});
afterAll(() => database.remove());

const QUESTION: SendQuestion = { fromDomain: DOMAIN, inboxAddress: INBOX, keys: [], unsubscribeLink: true };

function ask(sender: Sender, question: Partial<SendQuestion> = {}): Promise<SendFacts> {
  return sendFacts(database.db, sender, { ...QUESTION, ...question }, NOW);
}

describe("what a send asks of the database", () => {
  const every = ["home", "stranger"].flatMap((mark) => [
    ...["gone", "soon", "back"].map((name) => `${mark}@${name}.test`),
    ...[0, 1].map((subscribed) => `${mark}${subscribed}@contact.test`),
  ]);

  test("is answered from the project's own rows", async () => {
    expect(await ask(home, { keys: every })).toEqual({
      verified: true,
      inboxId: "inb_home",
      suppressed: new Set(["home@gone.test", "home@soon.test"]),
      unsubscribed: new Set(["home0@contact.test"]),
      webhooks: [{ webhookId: "whk_home", eventTypes: ["sent"] }],
    });
  });

  test("knows an unverified domain, and its inbox", async () => {
    expect(await ask(stranger, { keys: every })).toMatchObject({ verified: false, inboxId: "inb_stranger" });
  });

  test("has nothing for a project that has nothing, in an account that has all", async () => {
    expect(await ask(sibling, { keys: every })).toEqual({
      verified: false,
      inboxId: null,
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

  test("leaves the unsubscribed out unless asked for them", async () => {
    const keys = ["home0@contact.test"];
    expect((await ask(home, { keys })).unsubscribed).toEqual(new Set(keys));
    expect((await ask(home, { keys, unsubscribeLink: false })).unsubscribed).toEqual(new Set());
  });

  test.each([{ fromDomain: "other.test" }, { inboxAddress: `else@${DOMAIN}` }])(
    "finds no inbox for %j",
    async (question) => {
      expect((await ask(home, question)).inboxId).toBeNull();
    },
  );
});

describe("what a project owns where another account has a domain of that name", () => {
  test.each([
    ["home", home, "home-active"],
    ["stranger", stranger, "stranger-active"],
    ["sibling", sibling, undefined],
  ])("%s signs with no key but its own", async (_, sender, token) => {
    expect((await signingKey(database.db, sender.id, DOMAIN))?.token).toBe(token);
  });

  test.each([
    ["home", home, INBOX, "inb_home"],
    ["stranger", stranger, INBOX, "inb_stranger"],
    ["sibling", sibling, INBOX, undefined],
    ["home", home, `else@${DOMAIN}`, undefined],
  ])("%s finds no inbox but its own", async (_, sender, address, id) => {
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

describe("a message as it goes out", () => {
  test("comes with its content and the active key of its project's domain", async () => {
    expect(await findOutgoing(database, home.id, "msg_home_outbound")).toMatchObject({
      from: { email: INBOX },
      html: "<p>",
      text: null,
      headers: { "X-Of": "home" },
      hasAttachments: false,
      rendered: false,
      key: { token: "home-active", selector: "s-active" },
    });
  });

  test.each([
    ["another project's", home, "msg_stranger_outbound"],
    ["a sibling project's", sibling, "msg_home_outbound"],
    ["one that came in", home, "msg_home_inbound"],
  ])("is none: %s", async (_, sender, id) => {
    expect(await findOutgoing(database, sender.id, id)).toBeNull();
  });

  test("does not go out empty where the content of its body is gone", async () => {
    const id = "msg_home_outbound";
    const name = (inline: Uint8Array | null, body: Uint8Array | null) =>
      database.db.write([
        {
          sql: "UPDATE message_content SET inline_body = ?, body = ? WHERE message_id = ?",
          args: [inline, body, id],
        },
      ]);
    const [{ inline_body: inline } = { inline_body: null }] = await database.db.all<{
      inline_body: ArrayBuffer | null;
    }>("SELECT inline_body FROM message_content WHERE message_id = ?", [id]);
    await name(null, Buffer.from("of nothing"));
    expect(String(await reason(findOutgoing(database, home.id, id)))).toContain("gone");
    await name(inline === null ? null : new Uint8Array(inline), null);
    expect(await findOutgoing(database, home.id, id)).toMatchObject({ html: "<p>" });
  });

  test("has no key once its domain is deleted", async () => {
    const id = "msg_stranger_outbound";
    await database.db.write([
      { sql: "DELETE FROM inboxes WHERE domain_id = 'dom_stranger'", args: [] },
      { sql: "DELETE FROM domains WHERE id = 'dom_stranger'", args: [] },
    ]);
    expect((await findOutgoing(database, stranger.id, id))?.key).toBeNull();
  });
});
