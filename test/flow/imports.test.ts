import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { DAY_MS } from "../../src/core/time/units.ts";
import { noteEngagement } from "../../src/store/audience/engagement-times.ts";
import { MAX_COLUMNS, MAX_ROW_OCTETS } from "../../src/flows/imports/csv-rows.ts";
import { IMPORT_DAYS, QUIET_UPLOAD_MS } from "../../src/flows/imports/commit.ts";
import { MAX_IN_PROGRESS, PREVIEW_FAULTS } from "../../src/flows/imports/upload.ts";
import { MAX_FILE_BYTES } from "../../src/http/routes/imports.ts";
import { Postrider } from "../../sdk/src/index.ts";
import { until } from "../support/poll.ts";
import { type ApiAnswer, startService, type TestService } from "../support/service.ts";
import { turnUntil, type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";

setDefaultTimeout(90_000);

let service: TestService;
let clock: ShiftedClock;
beforeAll(async () => {
  clock = shiftedClock();
  service = await startService({ CAPTURE_STRICT: "0" }, clock);
});
afterAll(() => service.stop());

let projects = 0;
/** Makes a project, and returns its key. */
async function project(): Promise<string> {
  const made = await service.call(
    "POST",
    "/v1/senders",
    { externalId: `import-${++projects}`, name: "Import" },
    { key: service.accountKey },
  );
  const key = await service.call(
    "POST",
    "/v1/api-keys",
    { name: "k", senderId: made.body.id },
    { key: service.accountKey },
  );
  return key.body.secret;
}

type File = string | Uint8Array<ArrayBuffer> | ReadableStream;
type Kind = "contacts" | "suppressions";
const CSV = "text/csv";
const NDJSON = "application/x-ndjson";

async function upload(
  key: string,
  kind: Kind,
  file: File,
  {
    query = "",
    type = CSV,
    headers = {},
  }: { query?: string; type?: string; headers?: Record<string, string> } = {},
): Promise<ApiAnswer> {
  const response = await fetch(`${service.url}/v1/${kind}/import${query}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": type, ...headers },
    body: file,
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

const preview = (key: string, kind: Kind, file: File, type = CSV) =>
  upload(key, kind, file, { query: "?preview=1", type });

async function done(key: string, id: string): Promise<ApiAnswer["body"]> {
  const read = async () => (await service.call("GET", `/v1/imports/${id}`, undefined, { key })).body;
  await turnUntil(clock, async () => (await read()).status === "done");
  return read();
}

/** Imports a file, and returns what became of it. */
async function imported(
  key: string,
  kind: Kind,
  file: File,
  type = CSV,
  query = "",
): Promise<ApiAnswer["body"]> {
  const { status, body } = await upload(key, kind, file, { type, query });
  expect([status, body]).toEqual([202, { id: expect.stringMatching(/^imp_/) }]);
  return done(key, body.id);
}

const list = async (key: string, kind: Kind) =>
  (await service.call("GET", `/v1/${kind}?limit=100`, undefined, { key })).body.data;

async function exported(key: string, kind: string): Promise<string> {
  const headers = { authorization: `Bearer ${key}`, accept: CSV };
  return (await fetch(`${service.url}/v1/${kind}`, { headers })).text();
}

const counts = (created: number, updated: number, unchanged: number, failed: number) => ({
  created,
  updated,
  unchanged,
  failed,
});

describe("importing contacts", () => {
  test("an import creates new contacts, changes the given fields of others, and says what became of each row", async () => {
    const key = await project();
    await service.call(
      "POST",
      "/v1/contacts",
      { email: "ana@x.test", firstName: "Ana", lastName: "A" },
      { key },
    );
    await service.call("POST", "/v1/contacts", { email: "ben@x.test", firstName: "Ben" }, { key });
    const file =
      'email,first name,metadata\r\nANA@x.test,Anna,\r\nben@x.test,,\r\n\r\ncy@x.test,"Cy ""C"" Doe","{""plan"":""pro""}"\r\nnobody,X,\r\n';
    const found = await imported(key, "contacts", file);
    expect(found).toMatchObject({
      kind: "contacts",
      rows: 4,
      ...counts(1, 1, 1, 1),
      endedAt: expect.any(String),
    });
    const contacts = await list(key, "contacts");
    expect(
      contacts.map(({ email, firstName, lastName, metadata }: never) => [
        email,
        firstName,
        lastName,
        metadata,
      ]),
    ).toEqual([
      ["cy@x.test", 'Cy "C" Doe', null, { plan: "pro" }],
      ["ben@x.test", "Ben", null, {}],
      ["ana@x.test", "Anna", "A", {}],
    ]);
    const table = await exported(key, found.resultUrl.slice("/v1/".length));
    expect(table.split("\r\n")).toEqual([
      "row,email,outcome,error",
      "2,ANA@x.test,updated,",
      "3,ben@x.test,unchanged,",
      "5,cy@x.test,created,",
      '6,nobody,failed,"""email"" must be an email address, such as ""ana@example.com""."',
      "",
    ]);
    const failed = await service.call("GET", `${found.resultUrl}?outcome=failed`, undefined, { key });
    expect(failed.body.data).toEqual([
      { row: 6, email: "nobody", outcome: "failed", error: expect.any(String) },
    ]);
  });

  test("columns with the names of properties are values of their types, and others are left out", async () => {
    const key = await project();
    for (const [name, type] of Object.entries({
      plan: "string",
      seats: "number",
      vip: "boolean",
      since: "date",
    }))
      await service.call("POST", "/v1/contact-properties", { name, type }, { key });
    const file =
      "Email,Plan,SEATS,vip,Since,City\na@x.test,7, 12 ,yes,2026-01-02,Rome\nb@x.test,,1.2.3,no,,\nc@x.test,pro,,,,\n";
    const headers = { "content-type": CSV };
    const { body } = await service.call("POST", "/v1/contacts/import?preview=1", file, { key, headers });
    expect(body.columns.map(({ field }: { field: string }) => field)).toEqual([
      "email",
      "properties.plan",
      "properties.seats",
      "properties.vip",
      "properties.since",
      null,
    ]);
    expect(body.faults).toMatchObject([{ row: 3, error: expect.stringContaining("properties.seats") }]);
    expect(await imported(key, "contacts", file)).toMatchObject(counts(2, 0, 0, 1));
    const found = (await list(key, "contacts")).map(({ properties }: never) => properties);
    expect(found.reverse()).toEqual([
      { plan: "7", seats: 12, vip: true, since: "2026-01-02T00:00:00.000Z" },
      { plan: "pro" },
    ]);
  });

  test("a file of ours that is imported again changes nothing, and in another project makes the same list", async () => {
    const [from, to] = [await project(), await project()];
    const people = [
      {
        email: "a@x.test",
        firstName: "=SUM(1)",
        lastName: "'=x",
        metadata: { a: [1, { b: 'say "hi", ok' }] },
      },
      { email: "+b@x.test", firstName: "-1", lastName: "''@y", subscribed: false },
      { email: "c@xn--bcher-kva.test", firstName: "שלום", lastName: 'a;b, "c' },
      { email: "D@x.test" },
    ];
    await service.call("POST", "/v1/contacts/batch", { contacts: people }, { key: from });
    const { body: owner } = await service.call("GET", "/v1/me", undefined, { key: from });
    const engaged = (what: "sent" | "opened" | "clicked", at: number) =>
      noteEngagement(what, owner.project.id, "a@x.test", at);
    await service.app.db.write([engaged("sent", 1000), engaged("opened", 2000), engaged("clicked", 3000)]);
    const file = await exported(from, "contacts");
    expect(file).toContain("1970-01-01T00:00:01.000Z,1970-01-01T00:00:02.000Z,1970-01-01T00:00:03.000Z");
    expect(await imported(from, "contacts", file)).toMatchObject(counts(0, 0, 4, 0));
    expect(await imported(to, "contacts", file)).toMatchObject(counts(4, 0, 0, 0));
    const rows = (text: string) => text.split("\r\n").sort();
    expect(rows(await exported(to, "contacts"))).toEqual(rows(file));
    expect(await imported(to, "contacts", file.replaceAll("\r\n", "\n"))).toMatchObject(counts(0, 0, 4, 0));
  });

  test("a file subscribes nobody who has unsubscribed, but for the word true in a file of ours", async () => {
    const key = await project();
    const email = "left@x.test";
    const isSubscribed = async () => (await list(key, "contacts"))[0].subscribed;
    await service.call("POST", "/v1/contacts", { email, subscribed: false }, { key });
    for (const file of [
      `email,first_name,last_name,unsubscribed\n${email},L,,false\n`,
      `email,subscribed\n${email},\n`,
      `email\n${email}\n`,
    ]) {
      await imported(key, "contacts", file);
      expect([file, await isSubscribed()]).toEqual([file, false]);
    }
    await imported(key, "contacts", `{"email":"${email}"}`, NDJSON);
    expect(await isSubscribed()).toBe(false);
    await imported(key, "contacts", `email,subscribed\n${email},TRUE\n`);
    expect(await isSubscribed()).toBe(true);
    await imported(key, "contacts", `email,first_name,last_name,unsubscribed\n${email},,,true\n`);
    expect(await isSubscribed()).toBe(false);
  });

  test("an erased address that had unsubscribed or is suppressed is not mailed after an import, whatever the file says", async () => {
    const key = await project();
    const [una, sue] = ["una@x.test", "sue@x.test"];
    await service.call("POST", "/v1/contacts", { email: una, subscribed: false }, { key });
    await service.call("POST", "/v1/suppressions", { email: sue }, { key });
    for (const email of [una, sue]) {
      const { id } = (await service.call("POST", "/v1/erasures", { email }, { key })).body;
      await turnUntil(
        clock,
        async () =>
          (await service.call("GET", `/v1/erasures/${id}`, undefined, { key })).body.status === "done",
      );
    }
    const file = `email,subscribed\n${una},true\n${sue},true\n`;
    expect(await imported(key, "contacts", file)).toMatchObject(counts(2, 0, 0, 0));
    expect(await imported(key, "contacts", file)).toMatchObject(counts(0, 0, 2, 0));
    const [first, second] = await list(key, "contacts");
    expect([first, second].map(({ email, subscribed }) => [email, subscribed]).sort()).toEqual([
      [sue, true],
      [una, false],
    ]);
    expect(await imported(key, "suppressions", `email\n${sue}\n`)).toMatchObject(counts(0, 0, 1, 0));
    const mail = {
      from: { email: "shop@one.test" },
      to: [{ email: una }, { email: sue }],
      subject: "x",
      unsubscribeLink: true,
    };
    const sent = await service.call(
      "POST",
      "/v1/emails",
      { ...mail, html: '<a href="{{unsubscribe_url}}">x</a>' },
      { key },
    );
    const shown = await service.call("GET", `/v1/emails/${sent.body.id}`, undefined, { key });
    expect(shown.body.recipients.map(({ reason }: { reason: string }) => reason)).toEqual([
      "unsubscribed",
      "suppressed",
    ]);
  });

  test("an import goes up to the quota of contacts, and the rows beyond it fail", async () => {
    const limited = await startService({ QUOTA_CONTACTS: "3,3,3" });
    const call = async (query: string) => {
      const response = await fetch(`${limited.url}/v1/contacts/import${query}`, {
        method: "POST",
        headers: { authorization: `Bearer ${limited.projectKey}`, "content-type": CSV },
        body: Array.from({ length: 300 }, (_, at) => `c${at}@x.test`).reduce(
          (all, one) => `${all}${one}\n`,
          "email\n",
        ),
      });
      return response.json() as Promise<ApiAnswer["body"]>;
    };
    try {
      expect(await call("?preview=1")).toMatchObject(counts(3, 0, 0, 297));
      const { id } = await call("");
      const read = async () => (await limited.call("GET", `/v1/imports/${id}`)).body;
      await until(async () => (await read()).status === "done");
      expect(await read()).toMatchObject(counts(3, 0, 0, 297));
    } finally {
      await limited.stop();
    }
  });
});

describe("importing suppressions", () => {
  const short = (
    entries: { email: string; reason: string; bounceType: string | null; note: string | null }[],
  ) =>
    entries.map(({ email, reason, bounceType, note }) =>
      [email, reason, bounceType, note].filter((x) => x !== null),
    );

  const FILES: [string, string, string, string[][]][] = [
    [
      "SendGrid's bounces",
      "sendgrid",
      "status,reason,email,created\n5.1.1,550 no such user,a@x.test,1443651125\n",
      [["a@x.test", "bounce", "hard", "550 no such user"]],
    ],
    [
      "SendGrid's spam reports",
      "sendgrid",
      "ip,email,created\n192.0.2.1,a@x.test,2015-09-30 22:12:05\n",
      [["a@x.test", "complaint"]],
    ],
    ["SendGrid's unsubscribes", "sendgrid", "email,created\na@x.test,1443651125\n", [["a@x.test", "manual"]]],
    [
      "Mailgun's bounces",
      "mailgun",
      'address,code,error,created_at\na@x.test,550,No such mailbox,"Fri, 21 Oct 2011 11:02:55 GMT"\n',
      [["a@x.test", "bounce", "hard", "No such mailbox"]],
    ],
    [
      "Mailgun's complaints",
      "mailgun",
      'address,created_at\na@x.test,"Fri, 21 Oct 2011 11:02:55 GMT"\n',
      [["a@x.test", "complaint"]],
    ],
    [
      "Mailgun's unsubscribes",
      "mailgun",
      'address,tags,created_at\na@x.test,*,"Fri, 21 Oct 2011 11:02:55 GMT"\n',
      [["a@x.test", "manual", "unsubscribed at Mailgun"]],
    ],
    [
      "Postmark's suppressions",
      "postmark",
      "EmailAddress,SuppressionReason,Origin,CreatedAt\na@x.test,HardBounce,Recipient,2019-12-10T08:58:33-05:00\nb@x.test,SpamComplaint,Recipient,\nc@x.test,ManualSuppression,Customer,\n",
      [
        ["a@x.test", "bounce", "hard"],
        ["b@x.test", "complaint"],
        ["c@x.test", "manual"],
      ],
    ],
    [
      "SES's list",
      "ses",
      "EmailAddress,Reason,LastUpdateTime\na@x.test,BOUNCE,2020-04-10T21:03:05Z\n",
      [["a@x.test", "bounce", "hard"]],
    ],
    [
      "SES's file for bulk changes",
      "ses",
      "a@x.test,BOUNCE\nb@x.test,COMPLAINT\n",
      [
        ["a@x.test", "bounce", "hard"],
        ["b@x.test", "complaint"],
      ],
    ],
    ["a list of addresses", "other", "a@x.test\n", [["a@x.test", "manual"]]],
    [
      "a list of Excel with semicolons",
      "other",
      "sep=;\r\nE-Mail;Note\r\na@x.test;asked, by phone\r\n",
      [["a@x.test", "manual", "asked, by phone"]],
    ],
  ];

  test.each(FILES)("a preview recognizes %s", async (_, form, file, entries) => {
    const { body } = await preview(service.projectKey, "suppressions", file);
    expect(body).toMatchObject({ form, rows: entries.length, ...counts(entries.length, 0, 0, 0) });
    expect(await list(service.projectKey, "suppressions")).toEqual([]);
  });

  test("the files of other services become entries with their reasons and notes, with a byte order mark or without", async () => {
    const begun = await Promise.all(
      FILES.slice(0, 8).map(async ([, , file, entries], at) => {
        const key = await project();
        const mark = at % 2 === 0 ? "\ufeff" : "";
        return { key, entries, id: (await upload(key, "suppressions", mark + file)).body.id };
      }),
    );
    for (const { key, id, entries } of begun) {
      await done(key, id);
      expect(short(await list(key, "suppressions")).sort()).toEqual(entries);
    }
  });

  test("a file of ours makes the same list in another project", async () => {
    const [from, to] = [await project(), await project()];
    const expiresAt = new Date(clock.now() + DAY_MS).toISOString();
    await service.call(
      "POST",
      "/v1/suppressions",
      { email: "a@x.test", note: "-asked", expiresAt },
      { key: from },
    );
    await imported(from, "suppressions", "b@x.test\nc@x.test\n", CSV, "?reason=complaint");
    const file = await exported(from, "suppressions");
    await imported(to, "suppressions", file);
    const sorted = (text: string) => text.split("\r\n").sort();
    expect(sorted(await exported(to, "suppressions"))).toEqual(sorted(file));
    expect(await imported(from, "suppressions", file)).toMatchObject(counts(0, 0, 3, 0));
  });

  test("an import makes an entry last longer, but never shorter", async () => {
    const key = await project();
    const expiresAt = new Date(clock.now() + DAY_MS).toISOString();
    await service.call("POST", "/v1/suppressions", { email: "a@x.test", note: "n", expiresAt }, { key });
    await service.call("POST", "/v1/suppressions", { email: "b@x.test" }, { key });
    const file = `email,reason\na@x.test,bounce\nA@x.test,bounce\nb@x.test,manual\n`;
    expect((await preview(key, "suppressions", file)).body).toMatchObject(counts(0, 1, 2, 0));
    expect(await imported(key, "suppressions", file)).toMatchObject(counts(0, 1, 2, 0));
    expect((await list(key, "suppressions")).map(({ expiresAt: at }: { expiresAt: null }) => at)).toEqual([
      null,
      null,
    ]);
    const shorter = `email,expiresAt\na@x.test,${expiresAt}\n`;
    expect(await imported(key, "suppressions", shorter)).toMatchObject(counts(0, 0, 1, 0));
  });
});

describe("a file that cannot be imported", () => {
  const utf16 = (text: string) => new Uint8Array(Buffer.from(`\ufeff${text}`, "utf16le"));
  test.each<[string, Kind, File, string]>([
    ["UTF-16", "contacts", utf16("email\na@x.test\n"), "UTF-16"],
    ["UTF-16 without a mark", "contacts", new Uint8Array(Buffer.from("email\n", "utf16le")), "UTF-16"],
    [
      "Latin-1",
      "contacts",
      new Uint8Array(Buffer.from("email,name\na@x.test,Jos\xe9\n", "latin1")),
      "Latin-1",
    ],
    ["a spreadsheet", "contacts", new Uint8Array(Buffer.from("PK\x03\x04rest", "latin1")), "as CSV"],
    ["compressed", "contacts", new Uint8Array(Bun.gzipSync("email\n")), "uncompressed"],
    ["empty", "contacts", "", "no rows"],
    ["a heading alone", "contacts", "email,first_name\n", "no rows"],
    ["without addresses", "contacts", "name,plan\nAna,pro\n", 'Name one "email"'],
    ["without a heading", "contacts", "a@x.test,Ana\n", "names of the columns"],
    [
      "a list of contacts for suppressions",
      "suppressions",
      "email,first_name,last_name,unsubscribed\na@x.test,,,\n",
      "/v1/contacts/import",
    ],
    [
      "a list of suppressions for contacts",
      "contacts",
      "email,created\na@x.test,1443651125\n",
      "/v1/suppressions/import",
    ],
    ["with an open quote", "contacts", 'email,x\na@x.test,"open\n', "never closed"],
    ["with a quote in a cell", "contacts", 'email,x\na@x.test,a "b" c\n', "Row 2: A quote"],
  ])("%s is refused with what to do", async (_, kind, file, message) => {
    const { status, body } = await upload(service.projectKey, kind, file);
    expect([status, body.error.message]).toEqual([422, expect.stringContaining(message)]);
  });

  test("a row as long as the limit is imported, and one octet more refuses the file", async () => {
    const fits = `email,x\na@x.test,${"x".repeat(MAX_ROW_OCTETS - "a@x.test".length)}\n`;
    expect((await preview(service.projectKey, "contacts", fits)).body).toMatchObject({ rows: 1, failed: 0 });
    const over = await preview(service.projectKey, "contacts", fits.replace("xx", "xxx"));
    expect([over.status, over.body.error.message]).toEqual([
      422,
      expect.stringContaining(`longer than ${MAX_ROW_OCTETS}`),
    ]);
    const commas = await preview(service.projectKey, "contacts", `email\n${",".repeat(3 * MAX_ROW_OCTETS)}`);
    expect([commas.status, commas.body.error.message]).toEqual([422, expect.stringContaining("longer than")]);
    const line = (length: number) => `{"email":"a@x.test","x":"${"x".repeat(length - 27)}"}`;
    expect(line(MAX_ROW_OCTETS).length).toBe(MAX_ROW_OCTETS);
    expect((await preview(service.projectKey, "contacts", line(MAX_ROW_OCTETS), NDJSON)).status).toBe(200);
    expect((await preview(service.projectKey, "contacts", line(MAX_ROW_OCTETS + 1), NDJSON)).status).toBe(
      422,
    );
  });

  test("a table as wide as the limit is imported, and one column more refuses the file", async () => {
    const wide = (columns: number) => `email${",x".repeat(columns - 1)}\na@x.test\n`;
    expect((await preview(service.projectKey, "contacts", wide(MAX_COLUMNS))).status).toBe(200);
    const over = await preview(service.projectKey, "contacts", wide(MAX_COLUMNS + 1));
    expect([over.status, over.body.error.message]).toEqual([
      422,
      expect.stringContaining(`${MAX_COLUMNS} columns`),
    ]);
  });

  test("a body over 256 MiB, of another type or compressed is refused before it is read", async () => {
    const headers = { "content-length": String(MAX_FILE_BYTES + 1) };
    const { hostname, port } = new URL(service.url);
    const answer = await new Promise<string>((resolve) => {
      void Bun.connect({
        hostname,
        port: Number(port),
        socket: {
          open: (socket) =>
            void socket.write(
              `POST /v1/contacts/import HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.projectKey}\r\nContent-Type: ${CSV}\r\nContent-Length: ${headers["content-length"]}\r\n\r\nemail\n`,
            ),
          data: (socket, data) => {
            socket.end();
            resolve(data.toString());
          },
        },
      });
    });
    expect(answer).toStartWith("HTTP/1.1 413");
    const json = await upload(service.projectKey, "contacts", "{}", { type: "application/json" });
    expect([json.status, json.body.error.param]).toEqual([400, "Content-Type"]);
    const packed = await upload(service.projectKey, "contacts", "x", {
      headers: { "content-encoding": "gzip" },
    });
    expect([packed.status, packed.body.error.param]).toEqual([400, "Content-Encoding"]);
  });

  test("a fault at the end of a file leaves nothing of it", async () => {
    const key = await project();
    const rows = Array.from({ length: 1000 }, (_, at) => `c${at}@x.test,\n`).join("");
    const { status } = await upload(key, "contacts", `email,x\n${rows}last@x.test,"open`);
    expect(status).toBe(422);
    expect(await list(key, "contacts")).toEqual([]);
    await turnUntil(
      clock,
      async () => (await service.app.db.first("SELECT 1 FROM imports WHERE status = 'dropped'")) === null,
    );
  });

  test("a row with a fault fails alone, and a preview shows the first of them", async () => {
    const key = await project();
    const bad = Array.from({ length: PREVIEW_FAULTS + 1 }, (_, at) => `bad${at}\n`).join("");
    const { body } = await preview(
      key,
      "contacts",
      `email,metadata,subscribed\n${bad}a@x.test,[1],\nb@x.test,,maybe\nc@x.test,,,x\nd@x.test\n`,
    );
    expect(body).toMatchObject({ form: "postrider", rows: 25, ...counts(1, 0, 0, 24) });
    expect(body.faults).toHaveLength(PREVIEW_FAULTS);
    expect(body.columns).toEqual(["email", "metadata", "subscribed"].map((name) => ({ name, field: name })));
    const lines = `{"email":"a@x.test"}\n\nnot json\n[1]\n{"name":"x"}\n`;
    const { faults } = (await preview(key, "contacts", lines, NDJSON)).body;
    expect(faults.map(({ row }: { row: number }) => row)).toEqual([3, 4, 5]);
  });
});

async function projectOf(importId: string): Promise<string> {
  const row = await service.app.db.first<{ id: string }>("SELECT sender_id AS id FROM imports WHERE id = ?", [
    importId,
  ]);
  return row?.id ?? "";
}

describe("uploads", () => {
  test("a repeated upload with the same Idempotency-Key gets the first answer, and with another file is refused", async () => {
    const key = await project();
    const headers = { "idempotency-key": "file-1" };
    const first = await upload(key, "contacts", "email\na@x.test\n", { headers });
    const again = await upload(key, "contacts", "email\na@x.test\n", { headers });
    expect([again.status, again.body, again.headers.get("idempotent-replayed")]).toEqual([
      202,
      first.body,
      "true",
    ]);
    const other = await upload(key, "contacts", "email\nb@x.test\n", { headers });
    expect([other.status, other.body.error.code]).toEqual([409, "idempotency_mismatch"]);
    await done(key, first.body.id);
    expect(await list(key, "contacts")).toHaveLength(1);
  });

  /** Begins an upload that waits for more. */
  function waiting(key: string): { answer: Promise<ApiAnswer>; end: () => void } {
    let end = (): void => undefined;
    const file = new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from("email\nslow@x.test\n"));
        end = () => controller.close();
      },
    });
    return { answer: upload(key, "contacts", file), end: () => end() };
  }

  test("a project has a few imports in progress, and one more is refused", async () => {
    const key = await project();
    const rows = await service.app.db.first<{ id: string }>(
      "SELECT id FROM senders ORDER BY id DESC LIMIT 1",
    );
    const begun = Array.from({ length: MAX_IN_PROGRESS - 1 }, (_, at) => ({
      sql: "INSERT INTO imports (id, sender_id, kind, status, touched_at, created_at) VALUES (?, ?, 'contacts', 'uploading', ?, ?)",
      args: [`imp_x${at}`, rows?.id ?? "", clock.now(), clock.now()],
    }));
    await service.app.db.write(begun);
    const last = waiting(key);
    await until(async () => {
      const { n } = (await service.app.db.first<{ n: number }>(
        "SELECT count(*) AS n FROM imports WHERE sender_id = ?",
        [rows?.id ?? ""],
      )) ?? { n: 0 };
      return n === MAX_IN_PROGRESS;
    });
    const over = await upload(key, "contacts", "email\na@x.test\n");
    expect([over.status, over.body.error.message]).toEqual([
      409,
      expect.stringContaining(`At most ${MAX_IN_PROGRESS}`),
    ]);
    last.end();
    expect((await last.answer).status).toBe(202);
    clock.shift(QUIET_UPLOAD_MS);
    await until(
      async () => (await service.app.db.first("SELECT 1 FROM imports WHERE status = 'uploading'")) === null,
    );
  });

  test("the client imports text and blobs, and reads what became of the rows", async () => {
    const client = new Postrider({ apiKey: await project(), baseUrl: service.url });
    const lines = new Blob(['{"email":"a@x.test"}\n{"email":"b"}\n'], { type: NDJSON });
    expect(await client.contacts.import(lines, { preview: "1" })).toMatchObject(counts(1, 0, 0, 1));
    const { id } = await client.contacts.import('{"email":"a@x.test"}');
    const entries = await client.suppressions.import("b@x.test\n", { reason: "complaint" });
    await turnUntil(clock, async () => (await client.imports.get(entries.id)).status === "done");
    await turnUntil(clock, async () => (await client.imports.get(id)).status === "done");
    const outcomes: string[] = [];
    for await (const { row, outcome } of client.imports.rows(id)) outcomes.push(`${row} ${outcome}`);
    expect(outcomes).toEqual(["1 created"]);
    expect((await client.suppressions.import("b@x.test\n", { preview: "1" })).unchanged).toBe(1);
  });

  test("an import of another project is not found, and its numbers need the right to read the list", async () => {
    const [key, other] = [await project(), await project()];
    const { id } = await imported(key, "contacts", "email\na@x.test\n");
    for (const path of [`/v1/imports/${id}`, `/v1/imports/${id}/rows`])
      expect((await service.call("GET", path, undefined, { key: other })).status).toBe(404);
    const made = await service.call(
      "POST",
      "/v1/api-keys",
      { name: "w", scopes: ["contacts:write"], senderId: await projectOf(id) },
      { key: service.accountKey },
    );
    const writer = made.body.secret;
    const seen = await preview(writer, "contacts", "email\na@x.test\nb@x.test\n");
    expect(seen.body).toMatchObject(counts(1, 1, 0, 0));
    expect((await service.call("GET", `/v1/imports/${id}`, undefined, { key: writer })).status).toBe(403);
    expect((await upload(writer, "suppressions", "a@x.test\n")).status).toBe(403);
  });

  test("an import and its results are removed after some days", async () => {
    const key = await project();
    const { id } = await imported(key, "contacts", "email\na@x.test\n");
    clock.shift(IMPORT_DAYS * DAY_MS + 1);
    await turnUntil(
      clock,
      async () => (await service.call("GET", `/v1/imports/${id}`, undefined, { key })).status === 404,
    );
    await turnUntil(
      clock,
      async () =>
        (await service.app.db.first("SELECT 1 FROM import_parts WHERE import_id = ?", [id])) === null,
    );
    expect(await list(key, "contacts")).toHaveLength(1);
  });
});
