import { expect, setDefaultTimeout, test } from "bun:test";
import { dkimVerify } from "mailauth/lib/dkim/verify";
import { systemClock } from "../../src/clock.ts";
import { publish } from "../support/dns.ts";
import { startService, verifiedDomain } from "../support/service.ts";

const LIMIT_MS = 90_000;
setDefaultTimeout(LIMIT_MS);
const WEEK_MS = 7 * 24 * 3_600_000;

test("each rotation signs with the published key, and the third uses the label of the first again", async () => {
  let ahead = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + ahead };
  const service = await startService({}, clock);
  const id = await verifiedDomain(service, "news.test");
  const call = (path: string) => service.call("POST", `/v1/domains/${id}${path}`);
  const signed = async () => {
    const sent = await service.call("POST", "/v1/emails", {
      from: { email: "a@news.test" },
      to: [{ email: "b@elsewhere.test" }],
      subject: "Signed",
      text: "Hi",
    });
    await service.message(sent.body.id, "delivered");
    const raw = (await service.call("GET", `/v1/emails/${sent.body.id}/raw`)).body;
    const active = await service.app.db.first<{ selector: string; public_key: string }>(
      "SELECT selector, public_key FROM dkim_keys WHERE domain_id = ? AND status = 'active'",
      [id],
    );
    const resolver = async () => [[`v=DKIM1; k=rsa; p=${active?.public_key}`]];
    const { results } = await dkimVerify(Buffer.from(raw), { resolver });
    return [active?.selector, results.map(({ selector, status }) => [selector, status.result])];
  };
  expect(await signed()).toEqual(["pr1", [["pr1", "pass"]]]);
  for (const selector of ["pr2", "pr1", "pr2"]) {
    const rotated = await call("/rotate-dkim");
    expect(rotated.status).toBe(200);
    // A customer who published both names once never needs to change the DNS again.
    if (selector === "pr2" && ahead === 0) publish(service.dns, rotated.body.records.slice(1, 2));
    await call("/verify");
    expect(await signed()).toEqual([selector, [[selector, "pass"]]]);
    ahead += WEEK_MS;
  }
  await service.stop();
});
