import { expect, test } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import type { FirstStart } from "../../src/flows/account/bootstrap.ts";
import { bannerText } from "../../src/wiring/process/banner.ts";

const FIRST_START: FirstStart = { accountKey: "pr_account", projectKey: "pr_project", keptIn: null };
const PORTS = {
  http: 41234,
  tls: null,
  smtp: 2525,
  submission: 587,
  submissions: null,
  dns: null,
  metrics: null,
};

function banner(
  env: Record<string, string>,
  firstStart: FirstStart | null = FIRST_START,
  startToken: string | null = "token",
): string {
  return bannerText(loadConfig(env), { ports: PORTS, firstStart, startToken });
}

test.each<[Record<string, string>, string]>([
  [{}, "http://localhost:41234"],
  [{ PORT: "0" }, "http://localhost:41234"],
  [{ PORT: "0", PUBLIC_URL: "https://mail.example.com/" }, "https://mail.example.com"],
])("%p: the API is at %s, and the first send is too", (env, url) => {
  expect(banner(env)).toContain(`  API        ${url}\n`);
  expect(banner(env)).toContain(`\ncurl -s ${url}/v1/emails `);
});

test("the first send is a command that the shell reads correctly, whatever the owner's address contains", async () => {
  const text = banner({ OWNER_EMAIL: "o'neil@example.com" });
  const command = text.slice(text.indexOf("curl ")).replace(/^curl/, "printf '%s\\n'");
  const words = (await new Response(Bun.spawn(["sh", "-c", command]).stdout).text()).trimEnd().split("\n");
  expect(words.slice(0, -1)).toEqual([
    "-s",
    "http://localhost:41234/v1/emails",
    "-H",
    "Authorization: Bearer pr_project",
    "-H",
    "Content-Type: application/json",
    "-d",
  ]);
  expect(JSON.parse(words.at(-1) ?? "")).toMatchObject({
    from: "Postrider <hello@onboarding.postrider.localhost>",
    to: "o'neil@example.com",
  });
});

test("a process without the API prints the keys that it has made, but no example request", () => {
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
])("a port after %s is shown as that of %s", (host, shown) => {
  expect(banner({ SMTP_HOST: host })).toContain(`  SMTP       ${shown}:2525\n`);
  expect(banner({ ROLES: "worker", HOST: host })).toContain(`  health     ${shown}:41234/readyz\n`);
});

test("a later start prints no keys and no link, but the command that makes one", () => {
  expect(banner({}, null, null)).not.toMatch(/key|curl|start#/);
  expect(banner({}, null, null)).toContain("`npm run postrider -- open`");
});

test("the first start prints one link, also with ROOT_API_KEY, but not in a process without the API", () => {
  expect(banner({}).split("\n")).toContain("Open http://localhost:41234/start#token");
  expect(banner({ PUBLIC_URL: "https://mail.example.com" }, null)).toContain(
    "Open https://mail.example.com/start#token\n".trim(),
  );
  expect(banner({ ROLES: "worker" })).not.toContain("token");
});

test("keys that a file keeps are not in the output, and the file is named", () => {
  const text = banner({}, { ...FIRST_START, keptIn: "/run/first.keys" });
  expect(text).not.toMatch(/pr_account|pr_project/);
  expect(text).toContain("/run/first.keys");
  // The link would sign in every reader of the output.
  expect(text).not.toContain("start#");
  expect(text).toContain("Bearer <project key>");
});
