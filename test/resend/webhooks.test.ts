import { describe, expect, test } from "bun:test";
import { Resend } from "resend";
import { Webhook } from "svix";
import { until } from "../support/poll.ts";
import { verifiedDomain } from "../support/service.ts";
import { webhookService } from "../support/webhook-service.ts";

const hooks = webhookService();
const client = () => new Resend(hooks.service.projectKey, { baseUrl: `${hooks.service.url}/resend` });

/** Waits for that many pushes and returns them. */
async function received(count: number) {
  await hooks.sink.requests.reached(count);
  return hooks.sink.requests.items;
}

describe("webhooks of the package resend", () => {
  test("webhooks of the package resend get Resend's events, which its own verify and Svix accept", async () => {
    const resend = client();
    await verifiedDomain(hooks.service, "shop.test");
    const made = await resend.webhooks.create({
      endpoint: hooks.sink.url,
      events: ["email.sent", "email.bounced", "email.suppressed"],
    });
    const { id = "", signing_secret: secret = "" } = made.data ?? {};
    expect(made.data).toEqual({
      object: "webhook",
      id,
      signing_secret: expect.stringMatching(/^whsec_.{44}$/),
    });
    const mail = {
      from: "Shop <a@shop.test>",
      subject: "Hi",
      text: "x",
      tags: [{ name: "run", value: "1" }],
    };
    const sent = await resend.emails.send({ ...mail, to: "bounced@simulator.mail.test" });
    const requests = await received(2);
    for (const { body, headers } of requests) {
      const signed = {
        id: headers.get("svix-id") ?? "",
        timestamp: headers.get("svix-timestamp") ?? "",
        signature: headers.get("svix-signature") ?? "",
      };
      expect(resend.webhooks.verify({ payload: body, headers: signed, webhookSecret: secret })).toEqual(
        JSON.parse(body),
      );
      const svix = {
        "svix-id": signed.id,
        "svix-timestamp": signed.timestamp,
        "svix-signature": signed.signature,
      };
      expect(() => new Webhook(secret).verify(body, svix)).not.toThrow();
      expect(() => new Webhook(secret).verify(`${body} `, svix)).toThrow();
    }
    const logged = async () => (await resend.webhooks.events.list({ webhookId: id })).data?.data ?? [];
    // An answer is recorded after the endpoint has given it.
    await until(async () => (await logged()).every(({ status }) => status === "success"));
    const log = await logged();
    expect(log.map(({ type }) => type).sort()).toEqual(["email.bounced", "email.sent"]);
    const eventId = log[0]?.id ?? "";
    const one = (await resend.webhooks.events.get({ webhookId: id, eventId })).data;
    expect(one).toMatchObject({ object: "webhook_event", id: eventId, payload: { type: log[0]?.type } });
    const tried = (await resend.webhooks.events.attempts.list({ webhookId: id, eventId })).data;
    expect(tried).toMatchObject({ has_more: false, data: [{ http_status_code: 200 }] });
    const replayed = await resend.webhooks.events.replay({ webhookId: id, eventId });
    expect(replayed.data).toEqual({ object: "webhook_event", id: eventId });
    await received(3);
    const events = requests
      .slice(0, 2)
      .map(({ body }) => JSON.parse(body))
      .sort((a, b) => (a.type < b.type ? 1 : -1));
    expect(events).toMatchObject([
      {
        type: "email.sent",
        created_at: expect.stringMatching(/Z$/),
        data: {
          email_id: sent.data?.id ?? "",
          from: "Shop <a@shop.test>",
          subject: "Hi",
          tags: { run: "1" },
          to: ["bounced@simulator.mail.test"],
        },
      },
      { type: "email.bounced", data: { bounce: { type: "Permanent", message: expect.stringMatching(/./) } } },
    ]);
  });

  test("a suppressed recipient and a scheduled send have events of their own", async () => {
    const resend = client();
    await verifiedDomain(hooks.service, "shop.test");
    await resend.suppressions.add({ email: "no@example.com" });
    await resend.webhooks.create({
      endpoint: hooks.sink.url,
      events: ["email.suppressed", "email.scheduled"],
    });
    const mail = { from: "a@shop.test", subject: "Hi", text: "x" };
    await resend.emails.send({ ...mail, to: "no@example.com" });
    await resend.emails.send({ ...mail, to: "delivered@simulator.mail.test" });
    await resend.emails.send({ ...mail, to: "delivered@simulator.mail.test", scheduledAt: "in 1 hour" });
    const requests = await received(2);
    const types = requests.map(({ body }) => JSON.parse(body).type).sort();
    expect(types).toEqual(["email.scheduled", "email.suppressed"]);
  });

  test("webhooks of the package resend are listed, changed, rotated and removed apart from those of /v1", async () => {
    const resend = client();
    const own = await hooks.subscribe(["delivery"]);
    const id =
      (await resend.webhooks.create({ endpoint: hooks.sink.url, events: ["email.sent"] })).data?.id ?? "";
    expect((await resend.webhooks.list()).data?.data.map((webhook) => webhook.id)).toEqual([id]);
    expect((await resend.webhooks.get(own.id)).error?.statusCode).toBe(404);
    expect((await resend.webhooks.remove(own.id)).error?.statusCode).toBe(404);
    expect(
      (await resend.webhooks.update(id, { events: ["email.failed"], status: "disabled" })).error,
    ).toBeNull();
    expect((await resend.webhooks.get(id)).data).toMatchObject({
      status: "disabled",
      events: ["email.failed"],
      signing_secret: "",
    });
    const rotated = await resend.webhooks.rotateSigningSecret(id);
    expect(rotated.data?.signing_secret).toMatch(/^whsec_.{44}$/);
    expect((await resend.webhooks.rotateSigningSecret(own.id)).error?.statusCode).toBe(404);
    const mixed = await hooks.service.call("PATCH", `/v1/webhooks/${id}`, { eventTypes: ["delivery"] });
    expect(mixed).toMatchObject({ status: 409, body: { error: { code: "invalid_state" } } });
    const refused = await resend.webhooks.create({ endpoint: hooks.sink.url, events: ["contact.created"] });
    expect(refused.error).toMatchObject({ statusCode: 422, name: "validation_error" });
    expect((await resend.webhooks.remove(id)).data).toEqual({ object: "webhook", id, deleted: true });
  });

  test("webhooks of a key that cannot read messages carry no content", async () => {
    await verifiedDomain(hooks.service, "shop.test");
    const made = await hooks.service.call("POST", "/v1/api-keys", {
      name: "hooks",
      scopes: ["webhooks:write"],
      senderId: (await hooks.service.call("GET", "/v1/me")).body.project.id,
    });
    const limited = new Resend(made.body.secret, { baseUrl: `${hooks.service.url}/resend` });
    await limited.webhooks.create({ endpoint: hooks.sink.url, events: ["email.delivered"] });
    const to = ["delivered@simulator.mail.test", "delivered+b@simulator.mail.test"];
    const sent = await client().emails.send({ from: "a@shop.test", to, subject: "Secret", text: "x" });
    const [first] = await received(2);
    expect(JSON.parse(first?.body ?? "").data).toEqual({
      email_id: sent.data?.id ?? "",
      to: [expect.any(String)],
    });
  });
});
