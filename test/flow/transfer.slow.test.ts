import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { MAX_LINE_BYTES } from "../../src/commands/transfer/file-format.ts";
import { MAX_REFUSED } from "../../src/commands/transfer/import-file.ts";
import { systemClock } from "../../src/clock.ts";
import { openDb } from "../../src/store/engine/client.ts";
import { KINDS } from "../../src/store/transfer/kinds.ts";
import { startServer } from "../support/database.ts";
import { newFolder } from "../support/folder.ts";
import { until } from "../support/poll.ts";
import { answersAt, makeEstate, makeFanOut, type RecordedAnswer } from "../support/recorded-answers.ts";
import { recounted } from "../support/recount.ts";
import { startService } from "../support/service.ts";
import { startWorld, type World } from "../support/tenants.ts";
import { type Env, postrider } from "./command-program.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(180_000);

let world: World;
let recorded: RecordedAnswer[];
/** The export with messages. */
let file = "";
let tables: Record<string, unknown[]>;

beforeAll(async () => {
  world = await startWorld({ ROLES: "api,worker" });
  const paths = (await makeEstate(world)).filter(({ path }) => !path.startsWith("/v1/imports"));
  await until(async () => (await waiting()) === 0);
  // Without workers nothing changes any more.
  await world.service.restart({ ROLES: "api" });
  await makeFanOut(world);
  // Imported files are not exported.
  const gone = ["import_parts", "imports"].map((table) => ({ sql: `DELETE FROM ${table}`, args: [] }));
  await world.service.app.db.write(gone);
  recorded = await answersAt(world.service.url, paths);
  file = join(newFolder("transfer"), "estate.ndjson");
  const ran = await postrider(["export", file, "--messages"], { DATA_DIR: world.service.folder });
  expect([ran.code, ran.stderr]).toEqual([0, ""]);
  tables = await rowsAt(world.service.folder);
}, 180_000);
afterAll(() => world.stop());

async function waiting(): Promise<number> {
  const row = await world.service.app.db.first<{ n: number }>(
    "SELECT count(*) AS n FROM recipients WHERE claimed_by IS NOT NULL OR due_at < ?",
    [Date.now() + 1000],
  );
  return row?.n ?? 0;
}

const open = (url: string) => openDb(systemClock, { url, authToken: null, syncUrl: null });

/** The rows of all exported tables, and the counted figures. */
async function rowsAt(folder: string, url = `file:${join(folder, "postrider.db")}`) {
  const db = await open(url);
  const found: Record<string, unknown[]> = {};
  for (const { table, key, omit = [] } of [
    ...KINDS,
    { table: "holdings", key: ["owner_id"] },
    { table: "stats_domains", key: ["sender_id", "day"] },
  ])
    found[table] = (
      await db.all<Record<string, unknown>>(`SELECT * FROM ${table} ORDER BY ${key.join(", ")}`)
    ).map((row) => asKept(table, row, omit));
  await db.close();
  return found;
}

/** What the two databases have in common, which excludes places in one database. */
function asKept(table: string, row: Record<string, unknown>, omit: readonly string[] = []) {
  const kept = Object.entries(row).filter(
    ([column]) =>
      !omit.includes(column) &&
      !(table === "contents" && column === "created_at") &&
      !(table === "zones" && column === "due_at"),
  );
  return Object.fromEntries(
    kept.map(([column, value]) => [
      column,
      value instanceof ArrayBuffer ? Buffer.from(value).toString("base64") : value,
    ]),
  );
}

/** A new folder with the master key of the exported installation. */
function emptyPlace(): { DATA_DIR: string } {
  const folder = newFolder("transfer");
  copyFileSync(join(world.service.folder, "master.key"), join(folder, "master.key"));
  return { DATA_DIR: folder };
}

async function imported(path: string, env: Env, ...flags: string[]) {
  const ran = await postrider(["import", path, ...flags], env);
  const rows = ran.json() as { kind: string; created: number; alreadyThere: number; refused: number }[];
  const sum = (field: "created" | "alreadyThere" | "refused") =>
    rows.reduce((total, row) => total + row[field], 0);
  return {
    ...ran,
    rows,
    created: () => sum("created"),
    there: () => sum("alreadyThere"),
    refused: () => sum("refused"),
  };
}

/** Writes another file beside the export. */
function changed(change: (lines: string[]) => string[] | string): string {
  const path = join(newFolder("transfer"), "changed.ndjson");
  const result = change(readFileSync(file, "utf8").split("\n"));
  writeFileSync(path, typeof result === "string" ? result : result.join("\n"));
  return path;
}

test("the estate that the tests compare has rows of every exported kind", () => {
  const lacking = Object.entries(tables).flatMap(([table, rows]) => (rows.length === 0 ? [table] : []));
  expect(lacking).toEqual([]);
});

test("an export imported into an empty folder has every row and figure of the first database, and answers every read alike", async () => {
  const place = emptyPlace();
  const ran = await imported(file, place);
  expect([ran.code, ran.refused(), ran.stderr]).toEqual([0, 0, expect.stringContaining("Held: ")]);
  // In this state nothing is sent, and every row that was due has its time again.
  await postrider(["release-held", "--yes"], place);
  expect(await rowsAt(place.DATA_DIR)).toEqual(tables as never);
  const second = await startService({ ROLES: "api", PLAN_PRO: "unlimited", ...place });
  try {
    const answers = await answersAt(second.url, recorded);
    for (const [at, answer] of answers.entries()) expect(answer).toEqual(recorded[at] as RecordedAnswer);
    const { counters, tables: counted } = await recounted(second.app.db, world.home.senderId);
    expect(counters).toEqual(counted);
  } finally {
    await second.stop();
  }
  const again = await imported(file, place);
  expect([again.code, again.created(), again.there()]).toEqual([0, 0, ran.created()]);
});

test("an export goes from a file to a server and back without a difference", async () => {
  const server = await startServer();
  try {
    const key = readFileSync(join(world.service.folder, "master.key"), "utf8").trim();
    const remote = { DATABASE_URL: server.url, MASTER_KEY: key, DATA_DIR: newFolder("transfer") };
    expect((await imported(file, remote)).refused()).toBe(0);
    const back = join(newFolder("transfer"), "back.ndjson");
    expect((await postrider(["export", back, "--messages"], remote)).code).toBe(0);
    const place = emptyPlace();
    expect((await imported(back, place)).refused()).toBe(0);
    await postrider(["release-held", "--yes"], place);
    expect(await rowsAt(place.DATA_DIR)).toEqual(tables as never);
  } finally {
    await server.stop();
  }
});

test("a dry run says what would be created, and changes nothing", async () => {
  const place = emptyPlace();
  await postrider(["migrate"], place);
  const before = await rowsAt(place.DATA_DIR);
  const dry = await imported(file, place, "--dry-run");
  expect([dry.code, dry.refused()]).toEqual([0, 0]);
  expect(await rowsAt(place.DATA_DIR)).toEqual(before as never);
  expect(dry.created()).toBe((await imported(file, place)).created());
});

test("without --messages a file has no messages, and with --project only what is that project's", async () => {
  const path = join(newFolder("transfer"), "one.ndjson");
  const { senderId } = world.home;
  const ran = await postrider(["export", path, "--project", senderId], { DATA_DIR: world.service.folder });
  expect(ran.code).toBe(0);
  const text = readFileSync(path, "utf8");
  expect(text).toContain(senderId);
  for (const other of [world.sibling, world.stranger]) expect(text).not.toContain(other.senderId);
  expect(text).not.toContain('{"messages":{');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const place = emptyPlace();
  const whole = await imported(path, place);
  expect([whole.code, whole.refused()]).toEqual([0, 0]);
});

test("a project joins the account of an installation that has one, with its keys working", async () => {
  const path = join(newFolder("transfer"), "one.ndjson");
  await postrider(["export", path, "--project", world.home.senderId, "--messages"], {
    DATA_DIR: world.service.folder,
  });
  copyFileSync(join(world.service.folder, "master.key"), `${path}.key`);
  const other = await startService({ ROLES: "api", PLAN_PRO: "unlimited" });
  try {
    const ran = await imported(path, { DATA_DIR: other.folder });
    expect(ran.stderr).toContain("join account");
    // Only the account that made the hash of an erased address recognizes it.
    const refused = ran.rows.flatMap(({ kind, refused }) => (refused > 0 ? [[kind, refused]] : []));
    expect(refused).toEqual([["erased_unsubscriptions", 1]]);
    await postrider(["release-held", "--yes"], { DATA_DIR: other.folder });
    const own = recorded.filter(
      ({ key, path: asked }) => key === world.home.key && asked.startsWith("/v1/webhooks"),
    );
    expect(await answersAt(other.url, own)).toEqual(own);
    // The secret opens with this installation's key.
    const [hook] = (await other.call("GET", "/v1/webhooks", undefined, { key: world.home.key })).body.data;
    const rotated = await other.call("POST", `/v1/webhooks/${hook.id}/test`, {}, { key: world.home.key });
    expect(rotated.status).toBeLessThan(300);
    expect(
      (await other.call("GET", "/v1/domains", undefined, { key: world.home.key })).body.data,
    ).not.toEqual([]);
  } finally {
    await other.stop();
  }
});

test("a database of an early checkout, which this version refuses to open, is exported and imported", async () => {
  const early = emptyPlace();
  await imported(file, early);
  const db = await open(`file:${join(early.DATA_DIR, "postrider.db")}`);
  const changes = [
    "UPDATE schema_migrations SET checksum = 'other' WHERE version = 1",
    "ALTER TABLE schema_migrations DROP COLUMN works_with",
    "ALTER TABLE templates ADD COLUMN colour TEXT",
    "DROP TABLE warm_ups",
  ];
  await db.migrate(changes.map((sql) => ({ sql, args: [] })));
  await db.close();
  expect((await postrider(["migrate"], early)).code).toBe(78);
  const path = join(newFolder("transfer"), "early.ndjson");
  expect((await postrider(["export", path, "--messages"], early)).code).toBe(0);
  const place = emptyPlace();
  const ran = await imported(path, place);
  expect([ran.code, ran.refused()]).toEqual([0, 0]);
  expect(ran.stderr).toContain("left out, because this version has no such column: templates.colour");
  await postrider(["release-held", "--yes"], place);
  expect(await rowsAt(place.DATA_DIR)).toEqual({ ...tables, warm_ups: [] } as never);
});

test("members and keys of the whole account get no rights in an installation that the projects join", async () => {
  const path = changed((lines) => lines);
  copyFileSync(join(world.service.folder, "master.key"), `${path}.key`);
  const other = await startService({ ROLES: "api" });
  try {
    const ran = await imported(path, { DATA_DIR: other.folder });
    const members = ran.rows.find(({ kind }) => kind === "members");
    expect([ran.code, members?.created]).toEqual([1, 0]);
    expect(members?.refused).toBeGreaterThan(0);
    const wide = await other.app.db.all("SELECT id FROM api_keys WHERE sender_id IS NULL");
    expect(wide).toHaveLength(1);
  } finally {
    await other.stop();
  }
});

test("what another row of the database excludes is refused with the reason, and so is what belongs to it", async () => {
  const place = emptyPlace();
  const { senderId } = world.home;
  const clash = changed((lines) =>
    lines.map((line) =>
      line.startsWith('{"senders"') && line.includes(senderId)
        ? line.replaceAll(senderId, "snd_00000000000000000000000000")
        : line,
    ),
  );
  await imported(clash, place);
  const ran = await imported(file, place, "--dry-run");
  const real = await imported(file, place);
  expect(real.code).toBe(1);
  expect(real.rows).toEqual(ran.rows.map((row) => ({ ...row, dryRun: false })));
  expect(real.stderr).toContain(`senders ${senderId}: another row has the same account_id, external_id`);
  expect(real.stderr).toContain(`senders ${senderId} was refused`);
});

const CUT = "cut off";
test.each<[string, (lines: string[]) => string[] | string, string]>([
  ["is empty", () => "", "is empty"],
  ["is cut after a line", (lines) => lines.slice(0, 20), CUT],
  ["is cut within a line", (lines) => lines.slice(0, 20).join("\n").slice(0, -10), "line 20 is no row"],
  ["lacks a line", (lines) => lines.filter((_, at) => at !== 3), "and its last line says"],
  ["has something after its end", (lines) => [...lines.slice(0, -1), lines[1] ?? ""], "comes after the end"],
  [
    "has an unknown format",
    ([first = "", ...rest]) => [first.replace('"postrider":1', '"postrider":2'), ...rest],
    "has format 2, and this program reads 1",
  ],
  [
    "is of a newer schema",
    ([first = "", ...rest]) => [first.replace(/"schema":\d+/, '"schema":99'), ...rest],
    "is of schema 99",
  ],
  ["is no export", () => "hello\n", "the first line is not its header"],
  [
    "has an unknown kind",
    (lines) => lines.with(2, '{"unicorns":{"id":"x"}}'),
    'line 3 has the kind "unicorns"',
  ],
  ["lacks an id", (lines) => lines.with(2, '{"accounts":{"name":"x"}}'), "line 3 lacks id"],
  [
    "has a child before its parent",
    ([header = "", ...rest]) => [header, ...rest.toReversed().slice(2), ""],
    " after ",
  ],
  [
    "has an odd value",
    (lines) => lines.with(2, '{"accounts":{"id":"a","name":[1]}}'),
    "line 3 has a value that is no string",
  ],
])("a file that %s is refused, and nothing is imported", async (_, change, says) => {
  const place = emptyPlace();
  const ran = await imported(changed(change), place);
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining(says)]);
  expect(readdirSync(place.DATA_DIR)).toEqual(["master.key"]);
});

test("a line may be as long as the limit and not a byte longer", async () => {
  const place = emptyPlace();
  const row = (length: number) => {
    const [start, end] = [
      '{"accounts":{"id":"acc_x","name":"',
      '","owner_email":"o@x.test","created_at":1}}',
    ];
    return `${start}${"a".repeat(length - start.length - end.length)}${end}`;
  };
  const [header = ""] = readFileSync(file, "utf8").split("\n", 1);
  const path = join(newFolder("transfer"), "long.ndjson");
  const end = '{"end":{"accounts":1}}\n';
  writeFileSync(path, `${header}\n${row(MAX_LINE_BYTES + 1)}\n${end}`);
  const long = await imported(path, place);
  expect([long.code, long.stderr]).toEqual([
    1,
    expect.stringContaining(`line 2 is longer than ${MAX_LINE_BYTES} bytes`),
  ]);
  writeFileSync(path, `${header}\n${row(MAX_LINE_BYTES)}\n${end}`);
  expect((await imported(path, place)).created()).toBe(1);
});

test("with another master key a file is refused, and nothing is made", async () => {
  const folder = join(newFolder("transfer"), "new");
  mkdirSync(folder);
  const keys: Env[] = [{}, { MASTER_KEY: "x".repeat(40) }];
  for (const key of keys) {
    const ran = await imported(file, { DATA_DIR: folder, ...key });
    expect([ran.code, ran.stderr]).toEqual([78, expect.stringContaining("sealed with another master key")]);
  }
  expect(readdirSync(folder)).toEqual([]);
});

test("an import stops after more refused rows than it can remember", async () => {
  const place = emptyPlace();
  const path = join(newFolder("transfer"), "many.ndjson");
  const [header = ""] = readFileSync(file, "utf8").split("\n", 1);
  const template = (at: number) =>
    `{"senders":{"id":"snd_${at}","account_id":"acc_none","external_id":"x${at}","name":"x","plan":"pro","trust_tier":"new","created_at":1}}\n`;
  const many = MAX_REFUSED + 1;
  writeFileSync(path, `${header}\n`);
  appendFileSync(path, Array.from({ length: many }, (_, at) => template(at)).join(""));
  appendFileSync(path, `{"end":{"senders":${many}}}\n`);
  const ran = await imported(path, place);
  expect([ran.code, ran.stderr]).toEqual([
    1,
    expect.stringContaining(`more than ${MAX_REFUSED} rows to which others belong are refused`),
  ]);
});

test("an export overwrites nothing, and goes to standard output for -", async () => {
  const env = { DATA_DIR: world.service.folder };
  const ran = await postrider(["export", file], env);
  expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining("exists and is not overwritten")]);
  const unknown = join(newFolder("transfer"), "none.ndjson");
  const none = await postrider(["export", unknown, "--project", "snd_none"], env);
  expect([none.code, none.stderr, existsSync(unknown)]).toEqual([
    1,
    expect.stringContaining("no such project"),
    false,
  ]);
});
