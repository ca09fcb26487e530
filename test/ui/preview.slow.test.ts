import { describe, expect } from "bun:test";
import { type AddressInfo, createServer } from "node:net";
import type { Page } from "playwright-core";
import { trackHtml } from "../../src/mail/tracking.ts";
import { HOSTILE_HTML, HUGE_HTML } from "../support/hostile-html.ts";
import { SERVICE_DOMAIN } from "../support/service.ts";
import { CHROMIUM, COMPLETE_CHROMIUM, NO_FAULTS } from "../support/browser.ts";
import { browserTest, dashboard } from "../support/dashboard.ts";

// The complete browser acts on more of what a message says, such as hints of what it may need next.
const ui = dashboard({ program: COMPLETE_CHROMIUM ?? CHROMIUM });

/** The sender's own server. If it is reached at all, the sender knows that the message was opened. */
interface Attacker {
  url: string;
  /** The data that each connection has sent. Empty: it was opened in advance. */
  heads: string[];
  close(): void;
}

/** Starts one on a separate port, because browsers use an open connection again. */
async function startAttacker(): Promise<Attacker> {
  const heads: string[] = [];
  const server = createServer((socket) => {
    const at = heads.push("") - 1;
    socket.on("data", (chunk) => {
      heads[at] += chunk.toString("latin1");
      socket.end("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    });
    socket.on("error", () => undefined);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, heads, close: () => void server.close() };
}

const send = (html: string) =>
  ui.service.send({ from: `hello@onboarding.${SERVICE_DOMAIN}`, to: "owner@example.com", html });

/** Shows a URL in a frame as the dashboard does. Resolves when it has loaded. */
async function frame(page: Page, src: string): Promise<void> {
  await page.evaluate(`new Promise((loaded) => {
    document.querySelector("iframe")?.remove();
    window.told ??= [];
    window.onmessage = ({ data }) => told.push(data);
    const frame = document.createElement("iframe");
    Object.assign(frame, { src: ${JSON.stringify(src)}, onload: loaded });
    document.body.append(frame);
  })`);
}

const visit = () => ui.browser.visit(ui.service.url, "/", { key: ui.service.projectKey });

describe("the preview of a hostile message", () => {
  browserTest("runs nothing, asks no other host, and does not leave its frame", async () => {
    const { page, faults } = await visit();
    const here = page.url();
    for (const [name, hostile] of HOSTILE_HTML) {
      const attacker = await startAttacker();
      const id = await send(hostile.replaceAll("{evil}", attacker.url));
      await frame(page, `/v1/emails/${id}/preview`);
      const shown = page.frames()[1];
      const inside = shown?.locator("#go").first();
      if ((await inside?.count()) === 1) await inside?.click({ force: true });
      // Whatever the click began has begun before two more frames are drawn.
      await page.evaluate(
        "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))",
      );
      expect([name, page.url(), page.context().pages().length]).toEqual([name, here, 1]);
      expect([name, page.frames()[1]?.url()]).toEqual([name, `${ui.service.url}/v1/emails/${id}/preview`]);
      expect([name, attacker.heads]).toEqual([name, []]);
      attacker.close();
    }
    expect(await page.evaluate("told")).toEqual([]);
    expect(faults).toEqual(NO_FAULTS);
    await page.close();
  });

  browserTest(
    "is one of which the sender learns if its images are asked for, without the address or cookie",
    async () => {
      const attacker = await startAttacker();
      const { page } = await visit();
      const id = await send(`<img referrerpolicy=unsafe-url src="${attacker.url}/picture.png">`);
      await frame(page, `/v1/emails/${id}/preview?images=1`);
      const sent = attacker.heads.join("");
      expect(sent).toStartWith("GET /picture.png HTTP/1.1");
      expect(sent).not.toMatch(/^(?:referer|cookie):/im);
      attacker.close();
      await page.close();
    },
  );

  browserTest("freezes nothing, however large it is", async () => {
    const { page, faults } = await visit();
    for (const [name, huge] of HUGE_HTML) {
      const id = await send(huge());
      const from = performance.now();
      const loading = frame(page, `/v1/emails/${id}/preview`);
      // The page still draws and answers while its frame loads.
      await page.evaluate(
        "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))",
      );
      const drawn = performance.now() - from;
      await loading;
      process.stdout.write(
        `preview: ${name}: page drew after ${Math.round(drawn)} ms, frame loaded after ${Math.round(performance.now() - from)} ms\n`,
      );
    }
    expect(faults).toEqual(NO_FAULTS);
    await page.close();
  });
});

browserTest("a browser that shows html as it leaves asks for the picture of opens once", async () => {
  const { page } = await visit();
  await page.goto("about:blank");
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  const pixelUrl = "https://links.example.org/o/token";
  const ended = page.waitForEvent("requestfailed");
  await page.setContent(trackHtml("<p>Hello</p>", { pixelUrl, linkFor: null }));
  await ended;
  expect(asked).toEqual([pixelUrl]);
  await page.close();
});
