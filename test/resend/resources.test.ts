import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type BroadcastRecipientEventType, Resend } from "resend";
import { publish } from "../support/dns.ts";
import { until } from "../support/poll.ts";
import { receivingInboxes, startService, type TestService, verifiedDomain } from "../support/service.ts";

const TO = "delivered@simulator.mail.test";

let service: TestService;
let resend: Resend;
beforeAll(async () => {
  service = await startService();
  resend = new Resend(service.projectKey, { baseUrl: `${service.url}/resend` });
});
afterAll(() => service.stop());

describe("domains of the package resend", () => {
  test("a domain is added, verified, set to receive and removed", async () => {
    const made = (await resend.domains.create({ name: "mail.brand.com" })).data;
    const id = made?.id ?? "";
    expect(made).toMatchObject({
      name: "mail.brand.com",
      status: "pending",
      capabilities: { sending: "enabled", receiving: "disabled" },
    });
    expect(made?.records.map(({ record, type, status }) => [record, type, status])).toEqual([
      ["DKIM", "CNAME", "pending"],
      ["SPF", "TXT", "pending"],
      ["SPF", "TXT", "pending"],
      ["SPF", "CNAME", "not_started"],
    ] as never);
    publish(service.dns, (await service.call("GET", `/v1/domains/${id}`)).body.records);
    expect((await resend.domains.verify(id)).data).toEqual({ object: "domain", id });
    const receiving = { sending: "enabled", receiving: "enabled" } as const;
    expect((await resend.domains.update({ id, capabilities: receiving })).data).toEqual({
      object: "domain",
      id,
    });
    expect((await resend.domains.get(id)).data).toMatchObject({
      object: "domain",
      status: "verified",
      capabilities: receiving,
    });
    const listed = (await resend.domains.list()).data;
    expect(listed).toMatchObject({ object: "list", has_more: false, data: [{ id, name: "mail.brand.com" }] });
    expect((await resend.domains.remove(id)).data).toEqual({ object: "domain", id, deleted: true });
    expect((await resend.domains.get(id)).error).toMatchObject({ statusCode: 404, name: "not_found" });
  });

  test("a setting that a domain of Postrider has not is refused", async () => {
    const { error } = await resend.domains.create({ name: "b.test", customReturnPath: "send" });
    expect(error).toMatchObject({ statusCode: 422 });
    expect(error?.message).toStartWith('"custom_return_path" can only be "bounce".');
  });

  test("customReturnPath is the name of the return path's record, which is verified once it is there", async () => {
    const { data } = await resend.domains.create({ name: "own.brand.com", customReturnPath: "bounce" });
    const id = data?.id ?? "";
    expect(data?.records.at(-1)).toMatchObject({ name: "bounce.own.brand.com", type: "CNAME" });
    publish(service.dns, (await service.call("GET", `/v1/domains/${id}`)).body.recommended);
    await resend.domains.verify(id);
    const records = (await resend.domains.get(id)).data?.records ?? [];
    expect(records.map(({ status }) => status)).toEqual(["pending", "pending", "pending", "verified"]);
  });
});

describe("contacts of the package resend", () => {
  test("a contact is read, changed and removed by id and by address", async () => {
    const made = await resend.contacts.create({
      email: "ana@example.com",
      firstName: "Ana",
      unsubscribed: false,
      properties: { plan: "pro", seats: 3 },
    });
    const id = made.data?.id ?? "";
    expect(made.data).toEqual({ object: "contact", id });
    expect((await resend.contacts.get({ email: "ana@example.com" })).data).toMatchObject({
      object: "contact",
      id,
      first_name: "Ana",
      last_name: null,
      unsubscribed: false,
      properties: { plan: { type: "string", value: "pro" }, seats: { type: "number", value: 3 } },
    });
    const update = { email: "ana@example.com", unsubscribed: true, firstName: null };
    expect((await resend.contacts.update(update)).data).toEqual({ object: "contact", id });
    expect((await resend.contacts.get(id)).data).toMatchObject({ unsubscribed: true, first_name: null });
    expect((await resend.contacts.list({ audienceId: "all" })).data?.data).toMatchObject([{ id }]);
    expect((await resend.contacts.remove({ id })).data).toEqual({
      object: "contact",
      contact: id,
      deleted: true,
    });
    expect((await resend.contacts.get(id)).error).toMatchObject({ statusCode: 404 });
  });

  test("a segment gets members, lists them and those of a contact, and is removed", async () => {
    const made = (await resend.segments.create({ name: "Beta" })).data;
    const id = made?.id ?? "";
    expect(made).toEqual({ object: "segment", id, name: "Beta" });
    expect((await resend.segments.list()).data?.data).toMatchObject([{ id: "all" }, { id, name: "Beta" }]);
    const email = "ben@example.com";
    const contactId = (await resend.contacts.create({ email, segments: [{ id }] })).data?.id ?? "";
    const other =
      (await resend.contacts.create({ email: "cy@example.com", audienceId: "all" })).data?.id ?? "";
    const members = async () =>
      (await resend.contacts.list({ segmentId: id })).data?.data.map((one) => one.email);
    expect(await members()).toEqual([email]);
    expect((await resend.contacts.segments.add({ contactId: other, segmentId: id })).data).toEqual({ id });
    expect((await members())?.sort()).toEqual([email, "cy@example.com"]);
    expect((await resend.contacts.segments.list({ email })).data?.data).toMatchObject([
      { id: "all" },
      { id },
    ]);
    expect((await resend.contacts.segments.remove({ contactId: other, segmentId: id })).data).toMatchObject({
      id,
      deleted: true,
    });
    expect(await members()).toEqual([email]);
    expect((await resend.contacts.get(contactId)).data?.properties).toEqual({});
    expect((await resend.segments.update(id, { name: "Gamma" })).data).toEqual({ object: "segment", id });
    expect((await resend.audiences.get(id)).data).toMatchObject({ object: "segment", id, name: "Gamma" });
    expect((await resend.segments.remove(id)).data).toEqual({ object: "segment", id, deleted: true });
    expect((await resend.segments.get(id)).error).toMatchObject({ statusCode: 404 });
    expect((await service.call("GET", "/v1/contact-properties")).body.data).toEqual([]);
  });

  test("the segment of all contacts stays, and one with a filter takes no members", async () => {
    expect((await resend.audiences.get("all")).data).toMatchObject({ object: "segment", id: "all" });
    expect((await resend.segments.remove("all")).error).toMatchObject({ statusCode: 404 });
    expect((await resend.segments.get("other")).error).toMatchObject({ statusCode: 404 });
    const contact = { email: "ed@example.com" };
    const contactId = (await resend.contacts.create(contact)).data?.id ?? "";
    const all = { contactId, segmentId: "all" };
    expect((await resend.contacts.segments.add(all)).data).toEqual({ id: "all" });
    expect((await resend.contacts.segments.remove(all)).error).toMatchObject({ statusCode: 404 });
    const filter = { field: "email", op: "eq", value: contact.email };
    const { id } = (await service.call("POST", "/v1/segments", { name: "Ed", filter })).body;
    expect((await resend.contacts.list({ segmentId: id })).data?.data).toMatchObject([contact]);
    expect((await resend.contacts.segments.add({ contactId, segmentId: id })).error).toMatchObject({
      statusCode: 422,
      message: expect.stringContaining("whose filter says who is in it"),
    });
    const missing = await resend.contacts.create({ email: "fay@example.com", audienceId: "x" });
    expect(missing.error?.statusCode).toBe(404);
  });

  test("a CSV file is imported under the columns of the caller, and its import is read", async () => {
    const csv = "Mail,Given,Left\nhal@example.com,Hal,false\nivy@example.com,Ivy,true\nno address,X,false\n";
    const columnMap = { email: "Mail", firstName: "Given", unsubscribed: "Left" };
    const made = await resend.contacts.imports.create({ file: new Blob([csv]), columnMap });
    expect(made.data).toEqual({ object: "contact_import", id: expect.stringMatching(/^imp_/) as never });
    const read = async () => (await resend.contacts.imports.get(made.data?.id ?? "")).data;
    await until(async () => (await read())?.status === "completed");
    expect((await read())?.counts).toEqual({ total: 3, created: 2, updated: 0, skipped: 0, failed: 1 });
    expect((await resend.contacts.get({ email: "ivy@example.com" })).data).toMatchObject({
      first_name: "Ivy",
      unsubscribed: true,
    });
    const listed = { object: "list", has_more: false, data: [await read()] };
    expect((await resend.contacts.imports.list()).data).toEqual(listed as never);
    expect((await resend.contacts.imports.list({ status: "completed" })).data).toEqual(listed as never);
    expect((await resend.contacts.imports.list({ status: "in_progress" })).data?.data).toEqual([]);
    const skip = await resend.contacts.imports.create({ file: new Blob([csv]), onConflict: "skip" });
    expect(skip.error).toMatchObject({ statusCode: 422, message: expect.stringContaining("upsert") });
  });

  test("a property is defined, changed and removed, and a contact has its value", async () => {
    const made = await resend.contactProperties.create({
      key: "plan",
      type: "string",
      fallbackValue: "free",
    });
    const id = made.data?.id ?? "";
    expect(made.data).toEqual({ object: "contact_property", id });
    const shown = { id, key: "plan", type: "string", fallbackValue: "free" };
    expect((await resend.contactProperties.get(id)).data).toMatchObject(shown);
    expect((await resend.contactProperties.list()).data?.data).toMatchObject([shown]);
    expect((await resend.contactProperties.update({ id, fallbackValue: null } as never)).data).toEqual(
      made.data,
    );
    expect((await resend.contactProperties.get(id)).data?.fallbackValue).toBeNull();
    const columnMap = { email: "Mail", properties: { plan: { column: "Tier" } } };
    const file = new Blob(["Mail,Tier\nkim@example.com,pro\n"]);
    expect((await resend.contacts.imports.create({ file, columnMap })).error).toBeNull();
    await until(async () => (await resend.contacts.get({ email: "kim@example.com" })).data !== null);
    expect((await resend.contacts.get({ email: "kim@example.com" })).data?.properties).toEqual({
      plan: { type: "string", value: "pro" },
    } as never);
    const dated = (await resend.contactProperties.create({ key: "created", type: "string" })).data?.id ?? "";
    const asField = { email: "Mail", properties: { created: { column: "Tier" } } };
    const leo = new Blob(["Mail,Tier\nleo@example.com,gold\n"]);
    expect((await resend.contacts.imports.create({ file: leo, columnMap: asField })).error).toBeNull();
    await until(async () => (await resend.contacts.get({ email: "leo@example.com" })).data !== null);
    expect((await resend.contacts.get({ email: "leo@example.com" })).data?.properties).toEqual({
      created: { type: "string", value: "gold" },
    } as never);
    await resend.contactProperties.remove(dated);
    for (const [properties, param] of [
      [{ other: { column: "Tier" } }, "column_map.properties.other"],
      ["plan", "column_map.properties"],
    ] as const) {
      const wrong = { ...columnMap, properties } as never;
      const refused = await resend.contacts.imports.create({ file, columnMap: wrong });
      expect(refused.error?.message).toContain(param);
    }
    const email = "gil@example.com";
    const contact = (await resend.contacts.create({ email, properties: { plan: "pro", note: "x" } })).data
      ?.id;
    const record = (await service.call("GET", `/v1/contacts/${contact}`)).body;
    expect([record.properties, record.metadata]).toEqual([{ plan: "pro" }, { note: "x" }]);
    expect((await resend.contacts.get({ email })).data?.properties).toEqual({
      plan: { type: "string", value: "pro" },
      note: { type: "string", value: "x" },
    } as never);
    const removed = { object: "contact_property", id, deleted: true };
    expect((await resend.contactProperties.remove(id)).data).toEqual(removed as never);
  });

  test("a topic is made, changed, chosen, sent to and removed", async () => {
    const made = await resend.topics.create({
      name: "News",
      description: "Monthly",
      defaultSubscription: "opt_in",
    });
    const id = made.data?.id ?? "";
    const shown = { id, name: "News", description: "Monthly", default_subscription: "opt_in" };
    expect((await resend.topics.get(id)).data).toMatchObject(shown);
    expect((await resend.topics.update({ id, name: "Letters" })).data).toMatchObject({ id });
    expect((await resend.topics.list()).data?.data).toMatchObject([{ ...shown, name: "Letters" }]);
    const email = TO;
    const topics = [{ id, subscription: "opt_out" as const }];
    await resend.contacts.create({ email, topics });
    const choice = async () => (await resend.contacts.topics.list({ email })).data?.data[0]?.subscription;
    expect(await choice()).toBe("opt_out");
    await verifiedDomain(service, "topics.test");
    const mail = { from: "a@topics.test", to: email, subject: "News", text: "x", topicId: id };
    const left = await service.message((await resend.emails.send(mail)).data?.id ?? "", "rejected");
    expect(left.recipients[0].reason).toBe("unsubscribed");
    const back = { email, topics: [{ id, subscription: "opt_in" as const }] };
    expect((await resend.contacts.topics.update(back)).data?.id).toStartWith("con_");
    expect(await choice()).toBe("opt_in");
    const sent = await service.message((await resend.emails.send(mail)).data?.id ?? "", "delivered");
    expect(sent.topicId).toBe(id);
    expect((await resend.topics.remove(id)).data).toEqual({ object: "topic", id, deleted: true } as never);
    expect((await resend.emails.send(mail)).error).toMatchObject({ statusCode: 422 });
  });
});

describe("broadcasts of the package resend", () => {
  const HTML =
    '<p>Hi {{{contact.first_name|you "there"}}}</p><a href="{{{RESEND_UNSUBSCRIBE_URL}}}">Leave</a>';

  test("a broadcast is made, changed, shown as it was given, sent and listed", async () => {
    await verifiedDomain(service, "letters.test");
    const segmentId = (await resend.segments.create({ name: "Letters" })).data?.id ?? "";
    const email = TO.replace("@", "+letters@");
    await resend.contacts.create({ email, firstName: "Ana", segments: [{ id: segmentId }] });
    const given = {
      name: "May",
      segmentId,
      from: "Shop <a@letters.test>",
      replyTo: "re@letters.test",
      subject: "News for {{{FIRST_NAME}}}",
      previewText: "More & <more>",
      html: HTML,
    };
    const id = (await resend.broadcasts.create(given)).data?.id ?? "";
    const shown = {
      object: "broadcast",
      id,
      name: "May",
      segment_id: segmentId,
      from: given.from,
      reply_to: [given.replyTo],
      subject: "News for {{{contact.first_name}}}",
      preview_text: given.previewText,
      html: HTML,
      status: "draft",
      sent_at: null,
    } as const;
    expect((await resend.broadcasts.get(id)).data).toMatchObject(shown);
    expect((await resend.broadcasts.update(id, { name: "June" })).data).toMatchObject({ id });
    expect((await resend.broadcasts.send(id)).data).toEqual({ id });
    await until(async () => (await resend.broadcasts.get(id)).data?.status === "sent");
    const [sent] = (await service.call("GET", `/v1/broadcasts/${id}/recipients`)).body.data;
    const message = await service.message(sent.id, "delivered");
    expect(message.subject).toBe("News for Ana");
    expect(message.html).toContain("<p>Hi Ana</p>");
    expect((await resend.broadcasts.list()).data?.data[0]).toMatchObject({
      id,
      name: "June",
      status: "sent",
    });
    const recipients = async (type: BroadcastRecipientEventType, email?: string) =>
      (await resend.broadcasts.recipients(id, { type, ...(email === undefined ? {} : { email }) })).data;
    const contact_id = (await resend.contacts.get({ email })).data?.id ?? null;
    const one = { object: "list", has_more: false, data: [{ id: sent.id, contact_id, email }] };
    expect(await recipients("delivered")).toEqual(one as never);
    expect(await recipients("sent", "+LETTERS@")).toEqual(one as never);
    for (const type of ["opened", "clicked", "bounced", "complained", "suppressed"] as const)
      expect((await recipients(type))?.data, type).toEqual([]);
    expect((await recipients("delivered", "nobody"))?.data).toEqual([]);
    const softly = await resend.broadcasts.recipients(id, { type: "bounced", bounceType: "transient" });
    expect(softly.data?.data).toEqual([]);
    expect((await resend.broadcasts.recipients("x", { type: "sent" })).error?.statusCode).toBe(404);
    const copy = (await resend.broadcasts.duplicate(id)).data;
    expect((await resend.broadcasts.get(copy?.id ?? "")).data).toMatchObject({
      ...shown,
      id: expect.not.stringMatching(id) as never,
      name: "June (copy)",
    });
    // The topic that all broadcasts without one share was made.
    expect((await resend.topics.list()).data?.data).toMatchObject([{ name: "Broadcasts" }]);
  });

  test("a broadcast that is sent for later can be canceled and removed", async () => {
    const made = { segmentId: "all", from: "a@letters.test", subject: "x", html: HTML, send: true } as const;
    const id = (await resend.broadcasts.create({ ...made, scheduledAt: "in 1 hour" })).data?.id ?? "";
    expect((await resend.broadcasts.get(id)).data).toMatchObject({ status: "queued", segment_id: "all" });
    expect((await resend.broadcasts.cancel(id)).data).toEqual({ object: "broadcast", id });
    const removed = { object: "broadcast", id, deleted: true } as const;
    expect((await resend.broadcasts.remove(id)).data).toEqual(removed);
    const plain = { ...made, html: "<p>No link</p>" };
    expect((await resend.broadcasts.create(plain)).error).toMatchObject({ statusCode: 422 });
  });
});

describe("templates of the package resend", () => {
  test("a template with fallbacks is sent, and shown as it was given", async () => {
    const made = await resend.templates
      .create({
        name: "Welcome",
        alias: "welcome",
        subject: "Hi {{{NAME}}}",
        html: "<p>{{{NAME}}}: {{{COUNT}}}</p>",
        variables: [
          { key: "NAME", type: "string", fallbackValue: 'you "there"' },
          { key: "COUNT", type: "number", fallbackValue: 3 },
        ],
      })
      .publish();
    const id = made.data?.id ?? "";
    expect((await resend.templates.get("welcome")).data).toMatchObject({
      object: "template",
      id,
      name: "Welcome",
      alias: "welcome",
      status: "published",
      subject: "Hi {{{NAME}}}",
      html: "<p>{{{NAME}}}: {{{COUNT}}}</p>",
      variables: [
        { key: "NAME", type: "string", fallback_value: 'you "there"' },
        { key: "COUNT", type: "number", fallback_value: 3 },
      ],
    });
    await verifiedDomain(service, "tpl.test");
    const mail = { from: "a@tpl.test", to: TO, template: { id, variables: { NAME: "<b>Ana</b>" } } };
    const sent = (await resend.emails.send(mail)).data?.id ?? "";
    const record = await service.message(sent, "delivered");
    expect(record).toMatchObject({ subject: "Hi <b>Ana</b>", html: "<p><b>Ana</b>: 3</p>" });
    const bare = { from: "a@tpl.test", to: TO, template: { id } };
    const other = await service.message((await resend.emails.send(bare)).data?.id ?? "", "delivered");
    expect(other.subject).toBe('Hi you "there"');
    const copy = (await resend.templates.duplicate(id)).data?.id ?? "";
    expect((await resend.templates.update(copy, { name: "Other" })).data).toEqual({
      object: "template",
      id: copy,
    });
    const names = (await resend.templates.list()).data?.data.map(({ name }) => name);
    expect(names).toEqual(["Other", "Welcome"]);
    expect((await resend.templates.remove(copy)).data).toEqual({
      object: "template",
      id: copy,
      deleted: true,
    });
  });
});

describe("suppressions of the package resend", () => {
  test("addresses are added, read by id and address, listed by origin and removed", async () => {
    const made = (await resend.suppressions.add({ email: "Eve@Example.com" })).data;
    expect(made).toEqual({ object: "suppression", id: made?.id ?? "" });
    const shown = { object: "suppression", email: "eve@example.com", origin: "manual", source_id: null };
    expect((await resend.suppressions.get("eve@example.com")).data).toMatchObject(shown);
    expect((await resend.suppressions.get(made?.id ?? "")).data).toMatchObject(shown);
    expect((await resend.suppressions.list({ origin: "manual" })).data?.data).toHaveLength(1);
    expect((await resend.suppressions.list({ origin: "bounce" })).data?.data).toHaveLength(0);
    const batch = await resend.suppressions.batch.add({ emails: ["f@example.com", "g@example.com"] });
    expect(batch.data?.data).toHaveLength(2);
    const removed = await resend.suppressions.batch.remove({ emails: ["f@example.com", "g@example.com"] });
    expect(removed.data?.data).toMatchObject([{ deleted: true }, { deleted: true }]);
    expect((await resend.suppressions.remove("eve@example.com")).data).toMatchObject({ deleted: true });
    expect((await resend.suppressions.get("eve@example.com")).error?.statusCode).toBe(404);
  });
});

describe("API keys of the package resend", () => {
  test("a key that may only send is made, listed and revoked", async () => {
    const made = (await resend.apiKeys.create({ name: "Sender", permission: "sending_access" })).data;
    const sender = new Resend(made?.token ?? "", { baseUrl: `${service.url}/resend` });
    expect((await sender.domains.list()).error).toMatchObject({ name: "restricted_api_key" });
    const id = made?.id ?? "";
    expect((await resend.apiKeys.list()).data?.data.find((key) => key.id === id)).toMatchObject({
      name: "Sender",
    });
    expect((await resend.apiKeys.update(id, { name: "Mailer" })).data).toEqual({ object: "api_key", id });
    expect((await service.call("GET", "/v1/api-keys")).body.data).toContainEqual(
      expect.objectContaining({ id, name: "Mailer" }),
    );
    expect((await resend.apiKeys.remove(id)).data).toEqual({ object: "api_key", id, deleted: true } as never);
    expect((await resend.apiKeys.list()).data?.data.some((key) => key.id === id)).toBe(false);
    expect((await sender.domains.list()).error).toMatchObject({ statusCode: 401, name: "validation_error" });
  });
});

describe("received messages of the package resend", () => {
  test("received messages of the package resend are listed, read with their raw bytes and attachments, and forwarded", async () => {
    const [inbox] = await receivingInboxes(service, "in.test", ["support@in.test"]);
    const made = await service.call("POST", "/v1/inbound/simulate", {
      to: "support@in.test",
      from: { email: "ana@example.com", name: "Ana" },
      subject: "Help",
      text: "See file",
      attachments: [{ filename: "log.txt", content: btoa("oops") }],
    });
    expect(made.status).toBe(202);
    const id = made.body.messageId;
    const listed = (await resend.emails.receiving.list()).data?.data ?? [];
    expect(listed).toMatchObject([
      { id, from: "Ana <ana@example.com>", to: ["support@in.test"], received_for: ["support@in.test"] },
    ]);
    const one = (await resend.emails.receiving.get(id)).data;
    expect(one).toMatchObject({ object: "email", subject: "Help", attachments: [{ filename: "log.txt" }] });
    expect(one?.text).toContain("See file");
    const raw = await fetch((one?.raw?.download_url ?? "").replace(/^https?:\/\/[^/]+/, service.url));
    expect(await raw.text()).toContain("Subject: Help");
    const files = (await resend.emails.receiving.attachments.list({ emailId: id })).data?.data;
    const file = await fetch((files?.[0]?.download_url ?? "").replace(/^https?:\/\/[^/]+/, service.url));
    expect(await file.text()).toBe("oops");
    expect((await resend.emails.get(id)).error?.statusCode).toBe(404);
    expect(inbox).toBeDefined();
  });

  test("the package resend does not see another project's received messages", async () => {
    const key = { key: service.accountKey };
    const other = await service.call("POST", "/v1/senders", { name: "Other" }, key);
    const made = await service.call("POST", "/v1/api-keys", { name: "k", senderId: other.body.id }, key);
    const stranger = new Resend(made.body.secret, { baseUrl: `${service.url}/resend` });
    const id = (await resend.emails.receiving.list()).data?.data[0]?.id ?? "";
    expect((await stranger.emails.receiving.get(id)).error?.statusCode).toBe(404);
    expect((await stranger.emails.receiving.attachments.list({ emailId: id })).error?.statusCode).toBe(404);
    expect((await stranger.emails.receiving.list()).data?.data).toEqual([]);
  });
});

test("an account-wide key is told which key an SDK needs, in each operation that acts for a project", async () => {
  const wide = new Resend(service.accountKey, { baseUrl: `${service.url}/resend` });
  const mail = { from: "a@example.com", to: "b@example.com", subject: "s", text: "t" };
  const calls = {
    send: () => wide.emails.send(mail),
    list: () => wide.emails.list(),
    batch: () => wide.batch.send([mail]),
    domains: () => wide.domains.list(),
    webhooks: () => wide.webhooks.list(),
    key: () => wide.apiKeys.create({ name: "k" }),
  };
  for (const [name, call] of Object.entries(calls)) {
    const { error } = await call();
    expect([name, error?.statusCode, error?.message]).toEqual([
      name,
      400,
      expect.stringContaining("postrider keys create --name NAME --sender PROJECT"),
    ]);
  }
  const headers = {
    authorization: `Bearer ${service.accountKey}`,
    "x-service-product": "one",
    "x-service-sender": "two",
  };
  const differ = await fetch(`${service.url}/resend/domains`, { headers });
  expect(await differ.json()).toMatchObject({ message: expect.stringContaining("differ") });
});
