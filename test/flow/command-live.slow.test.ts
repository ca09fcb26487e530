import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { receivingInboxes, startService, type TestService } from "../support/service.ts";
import { postrider } from "./command-program.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(60_000);

const MAIN = join(import.meta.dir, "../../src/main.ts");
let service: TestService;
let inboxId: string;
let env: Record<string, string>;

beforeAll(async () => {
  service = await startService();
  [inboxId = ""] = await receivingInboxes(service, "in.tail.example", ["help@in.tail.example"]);
  env = { POSTRIDER_API_KEY: service.projectKey, PUBLIC_URL: service.url, DATA_DIR: newFolder("command") };
});
afterAll(() => service.stop());

/** A program that runs until the test kills it, and its output line by line. */
function start(args: readonly string[]) {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    cwd: newFolder("command"),
    env: { PATH: Bun.env.PATH ?? "", ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const lines = (async function* () {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of child.stdout as ReadableStream<Uint8Array>) {
      const pieces = (text + decoder.decode(chunk, { stream: true })).split("\n");
      text = pieces.pop() ?? "";
      yield* pieces;
    }
  })();
  return {
    line: async () => (await lines.next()).value ?? "",
    end: async () => {
      child.kill();
      await child.exited;
    },
  };
}

const receive = async (text = "Hello"): Promise<string> =>
  (await service.call("POST", "/v1/inbound/simulate", { inboxId, text })).body.messageId;
/** Sends until the program shows it: it says nothing when its stream is open. */
const streamOpen = async (): Promise<void> => {
  while (!/postrider_live_clients\{kind="stream"\} 1/.test(await service.metrics())) await Bun.sleep(10);
};

test("tail prints events as JSON, also after the service was away", async () => {
  const tail = start(["tail", "--types", "inbound_received"]);
  await streamOpen();
  const first = await receive();
  expect(JSON.parse(await tail.line())).toMatchObject({
    id: expect.stringMatching(/^evt_/),
    type: "inbound_received",
    messageId: first,
  });
  const { port } = new URL(service.url);
  await service.restart({ PORT: port });
  const second = await receive();
  expect(JSON.parse(await tail.line())).toMatchObject({ messageId: second });
  await tail.end();
});

test("tail prints a line of text for each event if it is asked to", async () => {
  const tail = start(["tail", "--no-json", "--types", "inbound_received"]);
  await streamOpen();
  const id = await receive();
  expect(await tail.line()).toMatch(
    new RegExp(`^\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z {2}inbound_received {2}${id} {2}delivered@simulator`),
  );
  await tail.end();
});

describe("a stream that is refused ends the command", () => {
  test.each([
    ["an unknown type", ["--types", "opened"], 1, "is no event type"],
    ["a wrong key", ["--key", "pr_wrong"], 1, "not valid"],
    ["a service that is not there", ["--url", "http://127.0.0.1:1"], 69, "cannot be reached"],
  ])("a stream that is refused for %s ends the command", async (_name, args, code, words) => {
    const ran = await postrider(
      ["tail", ...args],
      args.includes("--key") ? { ...env, POSTRIDER_API_KEY: "" } : env,
    );
    expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(words)]);
  });
});

test("listen posts each event to the address, signed with the printed secret", async () => {
  const { promise: posted, resolve } = Promise.withResolvers<{
    headers: Headers;
    body: string;
    path: string;
  }>();
  const app = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      resolve({ headers: request.headers, body: await request.text(), path: pathname + search });
      return new Response("", { status: 204 });
    },
  });
  const listen = start(["listen", "--forward-to", `http://127.0.0.1:${app.port}/hooks?a=1`]);
  const { secret } = JSON.parse(await listen.line());
  await streamOpen();
  const id = await receive();
  const { headers, body, path } = await posted;
  expect(path).toBe("/hooks?a=1");
  const [, t, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers.get("service-signature") ?? "") ?? [];
  expect(createHmac("sha256", secret).update(`${t}.${body}`).digest("hex")).toBe(mac ?? "");
  const envelope = JSON.parse(body);
  expect(envelope).toMatchObject({
    type: "inbound_received",
    createdAt: new Date(Number(t) * 1000).toISOString(),
    data: { messageId: id, inbound_received: { text: "Hello\n" } },
  });
  expect(envelope.data.type).toBeUndefined();
  expect(JSON.parse(await listen.line())).toEqual({
    id: envelope.id,
    type: "inbound_received",
    messageId: id,
    answer: 204,
  });
  await app.stop(true);
  await receive();
  expect(JSON.parse(await listen.line()).answer).toContain("connection failed");
  await listen.end();
});
