import { afterAll, beforeAll, expect, test } from "bun:test";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

// Rendered for its whole second, each time: a million times a million rounds.
const ROUNDS = "(1..1000000)";
const SLOW = `{% for i in ${ROUNDS} %}{% for j in ${ROUNDS} %}{% assign c = j %}{% endfor %}{% endfor %}`;
/** More than there are places for preparation. */
const MAILS = 70;

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

async function finished(): Promise<number> {
  const { body } = await service.call("GET", "/v1/emails?status=rendering_failure&limit=100");
  return body.data.length;
}

test("a project with slow templates delays no other mail, not even its own without a template", async () => {
  await verifiedDomain(service, "slow.test");
  const { body: other } = await service.call(
    "POST",
    "/v1/senders",
    { name: "b" },
    { key: service.accountKey },
  );
  const { body: key } = await service.call(
    "POST",
    "/v1/api-keys",
    { name: "b", senderId: other.id },
    { key: service.accountKey },
  );
  await verifiedDomain(service, "plain.test", key.secret);
  const { body: template } = await service.call("POST", "/v1/templates", {
    name: "slow",
    subject: "s",
    html: SLOW,
  });
  const from = { email: "a@slow.test" };
  const accepted = await Promise.all(
    Array.from({ length: MAILS }, (_, nth) =>
      service.call("POST", "/v1/emails", {
        from,
        to: [{ email: `a@d${nth % 20}.test` }],
        templateId: template.id,
      }),
    ),
  );
  expect(new Set(accepted.map(({ status }) => status))).toEqual(new Set([202]));
  const to = [{ email: "b@d0.test" }];
  const plain = { subject: "s", text: "x" };
  const own = await service.call("POST", "/v1/emails", { from, to, ...plain });
  const { body } = await service.call(
    "POST",
    "/v1/emails",
    { from: { email: "b@plain.test" }, to, ...plain },
    { key: key.secret },
  );
  const seen = async (id: string, secret: string) =>
    (await service.call("GET", `/v1/emails/${id}`, undefined, { key: secret })).body.status;
  while ((await seen(body.id, key.secret)) !== "delivered") await Bun.sleep(20);
  await service.message(own.body.id, "delivered");
  // One each second, so those in preparation would all have had to end first but for fifty.
  expect(await finished()).toBeLessThan(MAILS - 50);
});
