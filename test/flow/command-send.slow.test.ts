import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MAX_INPUT_BYTES } from "../../src/commands/send.ts";
import { freePort } from "../support/redis.ts";
import { captureService, postrider, program, type RunOptions } from "./command-program.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const LIMIT_MS = 90_000;
const { service, env, folder } = captureService({ CAPTURE_STRICT: "1" });
const keyFile = join(folder, "project.key");
const FROM = "hello@onboarding.postrider.localhost";
const OWNER = "owner@example.com";

beforeAll(async () => {
  await service.start();
  await postrider(["keys", "create", "--name", "sending", "--sender", "default", "--out", keyFile], env);
}, LIMIT_MS);
afterAll(async () => {
  await service.remove();
  rmSync(folder, { recursive: true, force: true });
});

const simulated = (name: string) => `${name}@simulator.postrider.localhost`;

function send(to: string, flags: readonly string[], options: RunOptions = {}) {
  const args = ["send", "--from", FROM, "--to", to, "--subject", "Hello", ...flags];
  return options.stdin === undefined ? postrider(args, env) : program(args, env, options);
}

async function record(id: unknown): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${await Bun.file(keyFile).text()}`.trim() };
  const answer = await fetch(`${service.url}/v1/emails/${String(id)}`, { headers });
  return (await answer.json()) as Record<string, unknown>;
}

const withKey = ["--key-file", keyFile];

describe("send", () => {
  test("send prints the id and the status of the accepted message", async () => {
    const { code, json } = await send(`${OWNER},${simulated("delivered")}`, [
      ...withKey,
      "--text",
      "It works.",
    ]);
    const [answer = {}] = json();
    expect([code, answer]).toEqual([0, { id: expect.stringMatching(/^msg_/), status: "queued" }]);
    expect(await record(answer.id)).toMatchObject({
      from: FROM,
      to: [OWNER, simulated("delivered")],
      subject: "Hello",
      text: "It works.",
      html: null,
    });
  });

  test.each<[string, number]>([
    ["delivered", 0],
    ["bounced", 1],
    ["rejected", 1],
  ])("--wait follows a message that is %s to its end: exit code %i", async (status, code) => {
    const ran = await send(simulated(status), [...withKey, "--text", "x", "--wait"]);
    expect([ran.code, ran.json()]).toMatchObject([
      code,
      [{ status, recipients: [{ email: simulated(status), status }] }],
    ]);
  });

  test("--wait gives up when its time is over, and says that the service continues", async () => {
    const ran = await send(simulated("delayed"), [...withKey, "--text", "x", "--wait", "--timeout", "1"]);
    expect([ran.code, ran.stdout]).toEqual([69, ""]);
    expect(ran.stderr).toMatch(/msg_\S+ is still delivery_delayed after 1 s/);
  });

  test.each<[string, string[], Record<string, unknown>]>([
    ["the text by -", ["-"], { text: "from a pipe", html: null }],
    ["the text by --text -", ["--text", "-"], { text: "from a pipe", html: null }],
    [
      "the html by --html -",
      ["--html", "-", "--text", "beside it"],
      { text: "beside it", html: "from a pipe" },
    ],
  ])("send reads %s from standard input", async (_case, flags, bodies) => {
    const ran = await send(OWNER, [...withKey, ...flags], { stdin: "from a pipe" });
    expect(ran.code).toBe(0);
    expect(await record(ran.json()[0]?.id)).toMatchObject(bodies);
  });

  test("send reads the key from standard input, and accepts an account-wide one with the project's name", async () => {
    const accountKey = { stdin: `${service.key}\n` };
    const flags = ["--key-file", "-", "--text", "x"];
    const without = await send(OWNER, flags, accountKey);
    expect([without.code, without.stderr]).toEqual([1, expect.stringContaining("X-Service-Product")]);
    const named = await send(OWNER, [...flags, "--sender", "default"], accountKey);
    expect([named.code, named.json()]).toMatchObject([0, [{ status: "queued" }]]);
  });

  test("send uses the key of the environment if no flag gives one", async () => {
    const key = (await Bun.file(keyFile).text()).trim();
    const args = ["send", "--from", FROM, "--to", OWNER, "--subject", "x", "--text", "x"];
    expect((await postrider(args, { ...env, POSTRIDER_API_KEY: key })).code).toBe(0);
    expect((await postrider(args, { ...env, POSTRIDER_API_KEY_FILE: keyFile })).code).toBe(0);
    const elsewhere = { PORT: "1", POSTRIDER_API_KEY: key };
    expect((await postrider(args, { ...elsewhere, POSTRIDER_URL: service.url })).code).toBe(0);
    expect((await postrider(args, elsewhere)).stderr).toContain("Set PORT as for the service");
    const withoutKey = await postrider(args, { ...env, POSTRIDER_URL: service.url });
    expect(withoutKey.stderr).toContain("an API key is needed");
    const other = { ...env, POSTRIDER_API_KEY: "pr_nobody" };
    expect((await postrider([...args, ...withKey], other)).code).toBe(0);
    expect((await postrider(args, other)).code).toBe(1);
  });

  test("send accepts a name with the address", async () => {
    const copies = ["--cc", `Co <${simulated("delivered")}>`, "--reply-to", "Help <help@example.com>"];
    const flags = ["--from", `Ärzte, Co <${FROM}>`, ...copies, ...withKey, "--text", "x"];
    const { json } = await send(OWNER, flags);
    expect(await record(json()[0]?.id)).toMatchObject({
      from: FROM,
      fromName: "Ärzte, Co",
      cc: [simulated("delivered")],
      replyTo: ["help@example.com"],
    });
  });

  test.each<[string, string[]]>([
    [`"Doe, Jane" <${OWNER}>`, ["Doe, Jane"]],
    [`Doe, Jane <${OWNER}>, ${simulated("delivered")},`, ["Doe, Jane", ""]],
    [`"a@b, c" <${OWNER}>,"d,e" <${simulated("delivered")}>`, ["a@b, c", "d,e"]],
  ])("--to %s: a comma in a name does not separate recipients", async (to, names) => {
    const ran = await send(to, [...withKey, "--text", "x"]);
    expect([ran.code, ran.stderr]).toEqual([0, ""]);
    const { addresses } = await record(ran.json()[0]?.id);
    const found = (addresses as { to: { email: string; name?: string }[] }).to;
    expect(found.map(({ name }) => name ?? "")).toEqual(names);
    expect(found[0]?.email).toBe(OWNER);
  });

  test("send reads as much of standard input as the API accepts for a text, and no byte more", async () => {
    const most = await send(OWNER, [...withKey, "-"], { stdin: "x".repeat(MAX_INPUT_BYTES) });
    expect(most.code).toBe(0);
    const over = await send(OWNER, [...withKey, "-"], { stdin: "x".repeat(MAX_INPUT_BYTES + 1) });
    expect([over.code, over.stderr]).toEqual([64, expect.stringContaining(`${MAX_INPUT_BYTES} bytes`)]);
  });

  const notAKey = join(folder, "not.key");
  writeFileSync(notAKey, "two words\n");
  const long = join(folder, "long.key");
  writeFileSync(long, "k".repeat(4097));
  const text = ["--text", "x"];
  test.each<[string, string[], number, string]>([
    ["without a key at another URL", [...text, "--url", "http://127.0.0.1:9"], 64, "--key-file"],
    ["with an unknown key", [...text, "--key", "pr_nobody"], 1, "401"],
    ["with two keys", [...text, ...withKey, "--key", "x"], 64, "either --key or --key-file"],
    ["with a key file that does not exist", [...text, "--key-file", "/nowhere"], 64, "cannot be read"],
    ["with a key file without a key", [...text, "--key-file", notAKey], 64, "does not hold an API key"],
    ["with a key file of more than 4096 bytes", [...text, "--key-file", long], 64, "longer than 4096 bytes"],
    ["without a body", withKey, 64, "missing: --text, --html or -"],
    ["with two texts", [...withKey, ...text, "-"], 64, "either --text or -"],
    ["with two things from standard input", ["--key-file", "-", "-"], 64, "for one thing alone"],
    ["with another argument", [...withKey, ...text, "x"], 64, "the only argument is -"],
    ["with an invalid URL", [...withKey, ...text, "--url", "ftp://x"], 64, "http://"],
    ["with an invalid time", [...withKey, ...text, "--timeout", "0"], 64, "--timeout"],
    ["with a time over a day", [...withKey, ...text, "--timeout", "86401"], 64, "--timeout"],
    ["to an invalid project", [...withKey, ...text, "--sender", "a\r\nb: c"], 64, "--sender"],
    ["to nobody", [...withKey, ...text, "--to", "nobody"], 1, "to["],
    [
      "from another account's domain",
      [...withKey, ...text, "--from", "a@example.org"],
      1,
      "domain_not_verified",
    ],
    ["without a server", [...withKey, ...text, "--url", `http://127.0.0.1:${freePort()}`], 69, "--url"],
  ])("%s is refused with the reason", async (_case, flags, code, says) => {
    const ran = await send(OWNER, flags, { stdin: "" });
    expect([ran.code, ran.stdout]).toEqual([code, ""]);
    expect(ran.stderr).toStartWith("postrider: ");
    expect(ran.stderr).toContain(says);
  });

  test("calls the service directly, whatever proxy the environment names", async () => {
    const proxied: string[] = [];
    const proxy = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: ({ url, headers }) => {
        proxied.push(`${url} ${headers.get("authorization")}`);
        return new Response("no", { status: 502 });
      },
    });
    const behind = { ...env, HTTP_PROXY: proxy.url.href, http_proxy: proxy.url.href };
    const args = ["send", "--from", FROM, "--to", OWNER, "--subject", "x", ...withKey, ...text, "--wait"];
    try {
      const ran = await postrider(args, behind);
      expect([ran.code, proxied]).toEqual([0, []]);
    } finally {
      await proxy.stop(true);
    }
  });

  test.each([
    ["an answer of 16 MiB and more", () => new Response("x".repeat(16 * 1024 * 1024 + 1)), "is longer than"],
    ["an answer that is not JSON", () => new Response("hello"), "answers 200, and not as this service does"],
  ])("%s is recognised as not coming from the service", async (_name, fetch, says) => {
    const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
    try {
      const ran = await send(OWNER, [...withKey, ...text, "--url", `http://127.0.0.1:${other.port}`]);
      expect([ran.code, ran.stderr]).toEqual([69, expect.stringContaining(says)]);
    } finally {
      await other.stop(true);
    }
  });

  test("send sends the key only to the service, and reports another server as such", async () => {
    const seen: string[] = [];
    const other = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: ({ url }) => {
        seen.push(new URL(url).pathname);
        return new Response(null, { status: 307, headers: { location: "/elsewhere" } });
      },
    });
    try {
      const ran = await send(OWNER, [...withKey, ...text, "--url", `http://127.0.0.1:${other.port}`]);
      expect([ran.code, ran.stderr]).toEqual([69, expect.stringContaining("answers 307")]);
      expect(seen).toEqual(["/v1/emails"]);
    } finally {
      await other.stop(true);
    }
  });
});
