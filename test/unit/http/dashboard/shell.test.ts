import { afterEach, beforeEach, expect, test } from "bun:test";
import { configure, type LogRecord, reset } from "@logtape/logtape";
import { yieldToEventLoop } from "../../../../src/core/concurrency/event-loop.ts";
import { MINUTE_MS } from "../../../../src/core/time/units.ts";
import { dashboardPage, type Draw } from "../../../../src/http/dashboard/shell.ts";
import { createAnswers, LARGE_ANSWER_LIMITS } from "../../../../src/http/pipeline/download.ts";
import { BODY_BASE_MS, bodyTimeMs } from "../../../../src/http/body/body.ts";
import { type ManualClock, manualClock } from "../../../support/manual-clock.ts";

let clock: ManualClock;
let lines: LogRecord[];
beforeEach(async () => {
  clock = manualClock();
  lines = [];
  await configure({
    reset: true,
    sinks: { lines: (line) => void lines.push(line) },
    loggers: [
      { category: [], sinks: ["lines"], lowestLevel: "warning" },
      { category: ["logtape", "meta"], lowestLevel: "error" },
    ],
  });
});
afterEach(() => reset());

/** Returns the dashboard for a session of an account, drawn in that way. */
function dashboard(draw: Draw) {
  const me = { account: { id: "acc_1" }, key: { senderId: "snd_1" } };
  const page = dashboardPage(
    {
      clock,
      draw,
      answers: createAnswers(clock),
      newestEvent: async () => null,
      files: async () => [],
      program: "postrider",
      provider: null,
      hasMembers: async () => false,
    },
    async () => Response.json(me),
  );
  return async (): Promise<ReadableStream<Uint8Array>> => {
    const headers = { accept: "text/html", cookie: "session=1" };
    const answer = await page(new Request("http://localhost/messages", { headers }));
    return answer?.body as ReadableStream<Uint8Array>;
  };
}

test("pages that cannot be drawn are a line of the log once a minute, and the script draws them", async () => {
  const open = dashboard(async () => {
    throw new Error("a fault of the page");
  });
  for (let count = 0; count < 1000; count++)
    expect(await new Response(await open()).text()).toContain('<div id="app"></div>');
  expect(lines).toHaveLength(1);
  clock.advance(MINUTE_MS);
  await new Response(await open()).text();
  expect(lines.map(({ properties }) => properties.pages)).toEqual([1, 1000]);
});

test("pages that browsers do not read hold no more memory than large answers may, for no longer than a body's time", async () => {
  const octets = 16 * 1024 * 1024;
  const text = "x".repeat(octets);
  const open = dashboard(async () => ({ html: text, values: {} }));
  const fit = Math.floor(LARGE_ANSWER_LIMITS.perOwner / (3 * octets));
  const unread = async () => {
    const reader = (await open()).getReader();
    await reader.read();
    await reader.read();
    return reader;
  };
  const readers = await Promise.all(Array.from({ length: fit }, unread));
  expect(await new Response(await open()).text()).toContain('<div id="app"></div>');
  clock.advance(BODY_BASE_MS + bodyTimeMs(octets));
  // Data that waits in sockets is read first.
  for (let turn = 0; turn < 4; turn++) await yieldToEventLoop();
  const cut = readers.map((reader) =>
    reader.read().then(
      () => "read",
      () => "cut",
    ),
  );
  expect(await Promise.all(cut)).toEqual(Array(fit).fill("cut"));
  expect((await new Response(await open()).text()).length).toBeGreaterThan(octets);
});
