import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createPrivateKey } from "node:crypto";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { newId } from "../../src/core/ids.ts";
import { RenderingFailure } from "../../src/core/templates/render.ts";
import { type MailToMake, makeMail, RenderingError } from "../../src/flows/mime/make-mail.ts";
import {
  MAX_MAIL_OCTETS_HERE,
  MAX_SOURCE_OCTETS_HERE,
  MAX_TEXT_SOURCE_HERE,
  openRenderer,
  STALL_MS,
} from "../../src/wiring/cpu/renderer.ts";
import { openWorker } from "../../src/wiring/cpu/cpu.ts";
import { hurried } from "../support/hurried-clock.ts";
import { TEST_KEY } from "../support/api.ts";
import { TEST_LINKS } from "../support/renderer.ts";
import { reason } from "../support/reason.ts";

/** Milliseconds: on a busy machine a thread takes seconds to start. */
setDefaultTimeout(90_000);

const open: { close(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

/** A renderer with one thread, and a count of the threads it started. */
function renderer(clock: Clock = systemClock, start = () => openWorker("render-worker.ts")) {
  const started = { threads: 0 };
  const made = openRenderer(
    { clock },
    {
      links: TEST_LINKS,
      cpus: 1,
      open() {
        started.threads++;
        return start();
      },
    },
  );
  open.push(made);
  return { ...made, started };
}

const ADA = { email: "ada@from.test", name: "Ada" };
const ID = newId("msg", 1_700_000_000_000);
const SENDER = newId("snd", 1_700_000_000_000);
const SOURCE = { subject: "", html: null, text: null };
const SLOW = "{% for a in (1..1000000) %}{% for b in (1..1000) %}{% assign c = b %}{% endfor %}{% endfor %}";

function mail(over: Partial<MailToMake> = {}): MailToMake {
  return {
    id: ID,
    ord: 0,
    from: ADA,
    to: [{ email: "bob@to.test" }],
    cc: [],
    replyTo: [],
    subject: "Grüße",
    html: '<a href="https://example.com/">x</a>',
    text: "hello",
    whole: null,
    headers: { "X-A": "b" },
    attachments: [],
    rfcMessageId: "<1@from.test>",
    hasOwnId: false,
    date: 1_700_000_000_000,
    trackOpens: true,
    trackClicks: true,
    unsubscribeLink: true,
    textFromHtml: true,
    stream: "transactional",
    senderId: SENDER,
    linkUrl: "https://links.from.test",
    signing: {
      domain: "from.test",
      keys: [{ selector: "s", privateKey: createPrivateKey(TEST_KEY.privateKeyPem) }],
    },
    ...over,
  };
}

describe("a message is the same wherever it is composed", () => {
  const bytes = crypto.getRandomValues(new Uint8Array(60_000));
  const forwarded = Buffer.from("Subject: x\r\n\r\nhello\r\n".repeat(2000));
  test.each<[string, Partial<MailToMake>]>([
    ["html", { html: `<p>${"é€ ".repeat(MAX_MAIL_OCTETS_HERE)}</p><a href="https://example.com/">x</a>` }],
    ["text", { text: "line\n".repeat(MAX_MAIL_OCTETS_HERE), html: null }],
    [
      "attachments",
      {
        attachments: [
          { filename: "a.bin", contentType: "application/pdf", bytes, disposition: "attachment" },
          { filename: "b.eml", contentType: "message/rfc822", bytes: forwarded, disposition: "attachment" },
          {
            filename: "c.png",
            contentType: "image/png",
            bytes: bytes.subarray(7, 5000),
            contentId: "c",
            disposition: "inline",
          },
        ],
      },
    ],
    ["html without text", { html: "<p>x</p>".repeat(MAX_TEXT_SOURCE_HERE / 8 + 1), text: null }],
    ["nobody's copy", { html: "<p>x</p>".repeat(MAX_MAIL_OCTETS_HERE), ord: null }],
    [
      "an address beyond ASCII",
      { text: "x".repeat(2 * MAX_MAIL_OCTETS_HERE), from: { email: "ädä@from.test" } },
    ],
  ])("%s", async (_, over) => {
    const { started, ...threads } = renderer();
    const here = await makeMail(TEST_LINKS, mail(over));
    const there = await threads.mail("snd_1", mail(over));
    expect(started.threads).toBe(1);
    expect(there.smtpUtf8).toBe(here.smtpUtf8);
    expect(Buffer.isBuffer(there.raw)).toBe(true);
    expect(there.raw.toString("latin1")).toBe(here.raw.toString("latin1"));
  });

  test("up to a size it is composed without a thread; with one octet more it takes one", async () => {
    const { started, ...threads } = renderer();
    const text = (octets: number) => mail({ html: null, text: "x".repeat(octets) });
    await threads.mail("snd_1", text(MAX_MAIL_OCTETS_HERE));
    expect(started.threads).toBe(0);
    await threads.mail("snd_1", text(MAX_MAIL_OCTETS_HERE + 1));
    expect(started.threads).toBe(1);
  });

  test("bulk mail of any size is composed in a thread, where no receipt waits for it", async () => {
    const { started, ...threads } = renderer();
    await threads.mail("snd_1", mail({ stream: "bulk", html: null, text: "x" }));
    expect(started.threads).toBe(1);
  });

  test("a text part is made of html up to a size without a thread; with one character more it takes one", async () => {
    const { started, ...threads } = renderer();
    const html = (chars: number) => mail({ html: "x".repeat(chars), text: null });
    await threads.mail("snd_1", html(MAX_TEXT_SOURCE_HERE));
    await threads.mail("snd_1", { ...html(MAX_TEXT_SOURCE_HERE + 1), textFromHtml: false });
    expect(started.threads).toBe(0);
    await threads.mail("snd_1", html(MAX_TEXT_SOURCE_HERE + 1));
    expect(started.threads).toBe(1);
  });

  test.each([1, 40])(
    "one that cannot be composed is refused because of its content, of %i KiB",
    async (kib) => {
      const fault = renderer().mail(
        "snd_1",
        mail({ headers: { From: "x@y.test" }, text: "x".repeat(kib * 1024) }),
      );
      expect(await reason(fault)).toBeInstanceOf(RenderingError);
      expect(await reason(fault)).toMatchObject({
        message: expect.stringContaining("not the sender's to set"),
      });
    },
  );
});

describe("a template", () => {
  test("a template is rendered in a thread", async () => {
    const { started, ...threads } = renderer();
    const source = { subject: "Hi {{ name }}", html: "<p>{{ name }}</p>", text: "{{ gone }}" };
    expect(await threads.template("snd_1", source, { name: "<Ada>" })).toEqual({
      subject: "Hi <Ada>",
      html: "<p>&lt;Ada&gt;</p>",
      text: "",
      missing: ["gone"],
    });
    expect(started.threads).toBe(1);
  });

  test.each([0, MAX_SOURCE_OCTETS_HERE])(
    "a template shows its variables, with %i octets around them",
    async (around) => {
      const threads = renderer();
      const html = `${"x".repeat(around)}{{ a.b }}{{ c }}`;
      expect(await threads.variables("snd_1", { ...SOURCE, html })).toEqual(["a.b", "c"]);
      expect(threads.started.threads).toBe(around === 0 ? 0 : 1);
      const broken = threads.variables("snd_1", { ...SOURCE, html: `${html}{{ a` });
      expect(await reason(broken)).toMatchObject({ part: "html", kind: "syntax" });
      expect(await reason(broken)).toBeInstanceOf(RenderingFailure);
    },
  );

  test("a template that takes its whole second does not delay others, and the refusal names the slow part", async () => {
    const threads = renderer();
    const slow = threads.template("snd_1", { ...SOURCE, text: SLOW }, {});
    let turns = 0;
    let over = false;
    const settled = slow.then(
      () => "rendered",
      (error: unknown) => error,
    );
    void settled.finally(() => {
      over = true;
    });
    while (!over) {
      await Bun.sleep(1);
      turns++;
    }
    expect(await settled).toMatchObject({ part: "text", kind: "rendering" });
    // In the calling thread it would be two or three.
    expect(turns).toBeGreaterThan(50);
  });

  test.each([1000, 200_000])(
    "with data of %i levels is refused, and others are still rendered",
    async (levels) => {
      const threads = renderer();
      const data = JSON.parse(`{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`);
      const refused = threads.template("snd_1", { ...SOURCE, html: "{{ a | json }}" }, data);
      expect(await reason(refused)).toMatchObject({ part: "html", kind: "rendering" });
      const others = Array.from({ length: 300 }, (_, at) =>
        threads.template(`snd_${at}`, { ...SOURCE, html: "{{ a }}" }, { a: at }),
      );
      expect((await Promise.all(others)).map(({ html }) => html)).toEqual(others.map((_, at) => String(at)));
      expect(threads.started.threads).toBe(1);
    },
  );

  test("a template of another project waits for at most one of a project's templates", async () => {
    const threads = renderer();
    const order: string[] = [];
    const slow = (name: string) =>
      threads.template("snd_1", { ...SOURCE, text: SLOW }, {}).catch(() => order.push(name));
    const all = [slow("first"), slow("second"), slow("third")];
    all.push(threads.template("snd_2", SOURCE, {}).then(() => order.push("other")));
    await Promise.all(all);
    expect(order).toEqual(["first", "other", "second", "third"]);
  });
});

describe("a task that hangs its thread", () => {
  /** A thread is waited for only half a second. */
  const held = () =>
    renderer(
      hurried(STALL_MS / 500),
      () => new Worker(new URL("../support/spinning-worker.ts", import.meta.url).href, { ref: false }),
    );
  const large = (word: string) => `${word} `.repeat(MAX_SOURCE_OCTETS_HERE);

  test("a template that hangs its thread is our error, and other templates are still rendered", async () => {
    const threads = held();
    const guilty = threads.variables("snd_1", { ...SOURCE, text: large("spin") });
    const other = threads.variables("snd_2", { ...SOURCE, text: large("fine") });
    expect(await reason(guilty)).toMatchObject({
      type: "service_unavailable",
      details: { retryAfterSeconds: expect.any(Number) },
    });
    expect(await other).toEqual(["done"]);
    expect(await threads.variables("snd_1", { ...SOURCE, text: large("fine") })).toEqual(["done"]);
  });

  test("a message that hangs its thread is our error too, so it is retried", async () => {
    const guilty = held().mail("snd_1", mail({ text: "spin ".repeat(MAX_MAIL_OCTETS_HERE) }));
    expect(await reason(guilty)).toMatchObject({
      type: "service_unavailable",
      details: { retryAfterSeconds: expect.any(Number) },
    });
  });
});

test("running tasks are rejected at the end", async () => {
  const threads = renderer();
  const slow = threads.template("snd_1", { ...SOURCE, text: SLOW }, {});
  threads.close();
  expect(await reason(slow)).toMatchObject({ message: expect.stringContaining("closed") });
});
