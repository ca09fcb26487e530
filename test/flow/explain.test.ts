import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { explain } from "../../src/flows/read/explain.ts";
import { textRules } from "../../src/mail/bounces/reply-phrases.ts";
import { receivingInboxes, startService, type TestService, verifiedDomain } from "../support/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startService();
  await verifiedDomain(service, "why.example");
});
afterAll(() => service.stop());

const send = (to: string[], item: Record<string, unknown> = {}) =>
  service.send({ from: "shop@why.example", to, text: "Hi", ...item });
const explained = async (id: string) => (await service.call("GET", `/v1/emails/${id}/explain`)).body;

describe("the explanation of a message", () => {
  test.each([
    ["delivered", "delivered@simulator.mail.test", "nobody", "mail server has taken"],
    ["bounced", "bounced@simulator.mail.test", "recipient", "does not exist"],
    ["complained", "complained@simulator.mail.test", "recipient", "suppressed now"],
  ])("the explanation of a message that %s names who can change it", async (status, to, who, words) => {
    const id = await send([to]);
    await service.message(id, status);
    const { summary, recipients } = await explained(id);
    expect(summary).toContain(words);
    expect(recipients).toEqual([
      { email: to, status, who, what: expect.any(String), why: expect.any(String), next: expect.any(String) },
    ]);
  });

  test("the explanation of a message to a suppressed address says where to lift the suppression", async () => {
    await service.call("POST", "/v1/suppressions", { email: "no@example.com" });
    const id = await send(["no@example.com", "yes@example.com"]);
    await service.message(id, "rejected");
    const { summary, recipients } = await explained(id);
    expect(summary).toBe("Of 2 recipients: 1 rejected, 1 delivered.");
    expect(recipients[0]).toMatchObject({ who: "you", why: "The address is on your suppression list." });
  });

  test("the explanation of a message that is scheduled says when it is due", async () => {
    const scheduledAt = new Date(Date.now() + 3_600_000).toISOString();
    const id = await send(["later@example.com"], { scheduledAt });
    expect((await explained(id)).summary).toContain(scheduledAt);
  });

  test("the explanation of a message that was received has no recipients", async () => {
    const [inboxId] = await receivingInboxes(service, "in.why.example", ["help@in.why.example"]);
    const { body } = await service.call("POST", "/v1/inbound/simulate", { inboxId, text: "Hello" });
    expect(await explained(body.messageId)).toEqual({ summary: "The message was received.", recipients: [] });
  });

  test("the explanation of a message that is unknown is 404", async () => {
    const answer = await service.call("GET", "/v1/emails/msg_00000000000000000000000000/explain");
    expect(answer.status).toBe(404);
  });
});

test("each subject of a refusal has a cause of its own", () => {
  const base = { direction: "outbound", status: "failed", scheduledAt: null } as never;
  const causes = new Map(
    textRules().map(({ category }) => {
      const recipient = { email: "a@b.example", status: "failed", reason: category, diagnostic: null };
      return [category, explain(base, [recipient as never], 0).recipients[0]?.why];
    }),
  );
  expect(new Set(causes.values()).size).toBe(causes.size);
});
