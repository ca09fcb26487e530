import { expect, test } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import { bannerText } from "../../src/wiring/banner.ts";

const FIRST_START = { accountKey: "pr_account", projectKey: "pr_project" };
const PORTS = { http: 41234, smtp: 2525, dns: null };

function banner(env: Record<string, string>, firstStart: typeof FIRST_START | null = FIRST_START): string {
  return bannerText(loadConfig(env), { ports: PORTS, firstStart });
}

test.each<[Record<string, string>, string]>([
  [{}, "http://localhost:41234"],
  [{ PORT: "0" }, "http://localhost:41234"],
  [{ PORT: "0", PUBLIC_URL: "https://mail.example.com/" }, "https://mail.example.com"],
])("%p: the API is at %s, and so is the first send", (env, url) => {
  expect(banner(env)).toContain(`  API        ${url}\n`);
  expect(banner(env)).toContain(`\ncurl -s ${url}/v1/emails `);
});

test("the first send is a command that the shell reads as it is meant, whatever the owner's address holds", async () => {
  const text = banner({ OWNER_EMAIL: "o'neil@example.com" });
  const command = text.slice(text.indexOf("curl ")).replace(/^curl/, "printf '%s\\n'");
  const words = (await new Response(Bun.spawn(["sh", "-c", command]).stdout).text()).trimEnd().split("\n");
  expect(words.slice(0, -1)).toEqual([
    ...["-s", "http://localhost:41234/v1/emails"],
    ...["-H", "Authorization: Bearer pr_project", "-H", "Content-Type: application/json", "-d"],
  ]);
  expect(JSON.parse(words.at(-1) ?? "")).toMatchObject({
    from: { email: "hello@onboarding.postrider.localhost" },
    to: [{ email: "o'neil@example.com" }],
  });
});

test("a process without the API tells the keys that it has made, and no request to itself", () => {
  const text = banner({ ROLES: "worker" });
  expect(text).toContain("pr_account");
  expect(text).toContain("pr_project");
  expect(text).not.toContain("curl");
  expect(text).toContain("  health     0.0.0.0:41234/readyz\n");
});

test.each([
  ["::", "[::]"],
  ["2001:db8::25", "[2001:db8::25]"],
  ["127.0.0.1", "127.0.0.1"],
  ["localhost", "localhost"],
])("a port behind %s is told as that of %s", (host, shown) => {
  expect(banner({ SMTP_HOST: host })).toContain(`  SMTP       ${shown}:2525\n`);
  expect(banner({ ROLES: "worker", HOST: host })).toContain(`  health     ${shown}:41234/readyz\n`);
});

test("a later start tells no keys", () => {
  expect(banner({}, null)).not.toMatch(/key|curl/);
});
