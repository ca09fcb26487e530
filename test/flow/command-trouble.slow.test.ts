import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import Database from "libsql";
import { explained } from "../../src/commands/support/trouble.ts";
import { newFolder } from "../support/folder.ts";
import { makeCert } from "../support/tls.ts";
import { startRole } from "../support/role-process.ts";
import { captureService, onTerminal, postrider, program, type Ran } from "./command-program.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

/** A port in use by another program, until it is released. */
async function takenPort(host = "127.0.0.1"): Promise<{ port: string; free(): void }> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, host, listening));
  const address = server.address();
  const port = address === null || typeof address === "string" ? 0 : address.port;
  return { port: String(port), free: () => void server.close() };
}

describe("a start that fails reports", () => {
  const [HOST, SMTP_HOST, SUBMISSION_HOST] = ["127.0.0.1", "127.0.0.1", "127.0.0.1"];
  const nothing = { HOST, PORT: "0", SMTP_HOST, SMTP_PORT: "0", SUBMISSION_HOST };

  /**
   * A start on a database that another process locks until the start has reported that. It ends at its port, which
   * is in use. @param locked called with the program before the database is released @param over further settings,
   * such as a free port
   */
  async function startBehindLock(
    locked: (child: Bun.Subprocess) => void = () => undefined,
    over: Record<string, string> = {},
  ): Promise<Ran & { port: string }> {
    const { port, free } = await takenPort();
    const env = { ...nothing, DATA_DIR: newFolder("command"), PORT: port, LOG_LEVEL: "debug", ...over };
    const database = new Database(join(env.DATA_DIR, "postrider.db"), { timeout: 5000 });
    database.exec("BEGIN EXCLUSIVE");
    const ran = await program(["serve"], env, {
      onError(text, child) {
        if (!text.includes("locked by another process") || !database.open) return;
        locked(child);
        database.exec("COMMIT");
        database.close();
      },
    });
    free();
    return { ...ran, port };
  }

  test.each(["SMTP_PORT", "PORT", "SUBMISSION_PORT", "METRICS_PORT"])(
    "a port in use by another program: %s",
    async (name) => {
      const { port, free } = await takenPort();
      const ran = await postrider(["serve"], { ...nothing, DATA_DIR: newFolder("command"), [name]: port });
      free();
      expect(ran.code).toBe(78);
      expect(ran.stderr).toContain(`${name}: cannot listen at 127.0.0.1:${port} (EADDRINUSE)`);
      expect(ran.stderr).not.toContain("at async");
    },
  );

  test("a UDP port in use by another program", async () => {
    const udp = await Bun.udpSocket({ hostname: "127.0.0.1" });
    const at = { DNS_HOST: "127.0.0.1", DNS_PORT: String(udp.port) };
    const ran = await postrider(["serve"], { ...nothing, DATA_DIR: newFolder("command"), ...at });
    udp.close();
    expect(ran.code).toBe(78);
    expect(ran.stderr).toContain(`DNS_PORT: cannot listen at 127.0.0.1:${udp.port} (EADDRINUSE)`);
  });

  test.each(["SMTP", "HTTP"])("a port of an IPv6 address, shown in brackets: %s", async (which) => {
    const { port, free } = await takenPort("::1");
    const at = which === "SMTP" ? { SMTP_HOST: "::1", SMTP_PORT: port } : { HOST: "::1", PORT: port };
    const ran = await postrider(["serve"], { ...nothing, DATA_DIR: newFolder("command"), ...at });
    free();
    expect(ran.stderr).toContain(`cannot listen at [::1]:${port} (EADDRINUSE)`);
  });

  test("a port in use by another Postrider, instead of sharing its requests", async () => {
    const { service, env, folder } = captureService();
    const other = { ...nothing, ...env, DATA_DIR: newFolder("command") };
    try {
      await service.start();
      const started = startRole(other).then(async (process) => process.kill().then(() => "started"));
      expect(await started.catch(String)).toContain(`cannot listen at 127.0.0.1:${env.PORT} (EADDRINUSE)`);
    } finally {
      await service.remove();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("nothing while another process creates the database, and waits for it", async () => {
    const { stderr, port } = await startBehindLock();
    expect(stderr).toContain("locked by another process");
    expect(stderr).toContain(`cannot listen at 127.0.0.1:${port}`);
  });

  test("a SIGHUP during the start does not end the process", async () => {
    const { code, stderr } = await startBehindLock((child) => child.kill("SIGHUP"));
    // It ends at the port, which is in use.
    expect([code, stderr]).toEqual([78, expect.stringContaining("cannot listen at")]);
  });

  test.each(["SIGTERM", "SIGINT"] as const)(
    "and if stopped before it has started, it prints the keys that it makes, and ends: %s",
    async (signal) => {
      const ran = await startBehindLock((child) => child.kill(signal), { PORT: "0" });
      expect([ran.code, ran.stdout]).toEqual([
        0,
        expect.stringMatching(/account-wide key {2}pr_\S+\n {2}project key {7}pr_\S+\n$/),
      ]);
      expect(ran.stdout).not.toContain("is running");
    },
  );

  test("a stop ends a start that never finishes", async () => {
    // A database server that accepts the connection and never answers.
    const silent = createServer();
    const connected = new Promise<void>((resolve) => silent.once("connection", () => resolve()));
    await new Promise<void>((listening) => silent.listen(0, "127.0.0.1", listening));
    const address = silent.address();
    const port = address === null || typeof address === "string" ? 0 : address.port;
    const env = { ...nothing, DATA_DIR: newFolder("command"), DATABASE_URL: `http://127.0.0.1:${port}` };
    const ran = program(["serve"], env, {
      onStart: (child) => void connected.then(() => child.kill("SIGTERM")),
    });
    const { code, stdout } = await ran;
    silent.close();
    expect([code, stdout]).toEqual([0, ""]);
  });

  test("a start makes no keys before it has its ports, so that the next start shows them", async () => {
    const { port, free } = await takenPort();
    const env = { ...nothing, DATA_DIR: newFolder("command") };
    const first = await postrider(["serve"], { ...env, PORT: port });
    free();
    expect([first.code, first.stdout, first.stderr]).toEqual([78, "", expect.stringContaining("EADDRINUSE")]);
    const second = await startRole(env);
    await second.kill();
    expect(second.output().stdout).toMatch(/account-wide key {2}pr_\w+\n {2}project key {7}pr_\w+\n/);
  });

  test.each([
    ["another MASTER_KEY", { MASTER_KEY: "o".repeat(40) }, "set MASTER_KEY to what it holds"],
    ["a MASTER_KEY_FILE with another one", { MASTER_KEY_FILE: "key" }, "set MASTER_KEY to what it holds"],
    [
      "a master.key without a key",
      { DATA: "master.key" },
      "put back the one that this database was sealed with",
    ],
  ])(
    "%s than the database was sealed with as an invalid setting",
    async (_, { MASTER_KEY, MASTER_KEY_FILE, DATA }: Record<string, string | undefined>, words) => {
      const { port, free } = await takenPort();
      const env = { ...nothing, DATA_DIR: newFolder("command"), PORT: port };
      await postrider(["serve"], env);
      free();
      if (DATA !== undefined) writeFileSync(join(env.DATA_DIR, DATA), "none\n");
      const file = join(newFolder("command"), "key");
      writeFileSync(file, "o".repeat(40));
      const { code, stderr } = await postrider(["serve"], {
        ...env,
        ...(MASTER_KEY === undefined ? {} : { MASTER_KEY }),
        ...(MASTER_KEY_FILE === undefined ? {} : { MASTER_KEY_FILE: file }),
      });
      expect([code, stderr]).toEqual([78, expect.stringContaining(words)]);
      expect(stderr).not.toContain("oooo");
    },
  );

  test("a secret that is given by both names", async () => {
    const { port, free } = await takenPort();
    const env = { ...nothing, DATA_DIR: newFolder("command"), PORT: port };
    const twice = { ROOT_API_KEY: "k".repeat(40), ROOT_API_KEY_FILE: "/nowhere" };
    const { stderr } = await postrider(["serve"], { ...env, ...twice });
    free();
    const [warning = "{}"] = stderr.split("\n");
    expect(JSON.parse(warning)).toMatchObject({
      level: "warning",
      message: "a setting is given twice",
      used: "ROOT_API_KEY",
      unread: "ROOT_API_KEY_FILE",
    });
  });

  test("a folder that it makes private to its owner", async () => {
    const { port, free } = await takenPort();
    const folder = join(newFolder("command"), "data");
    await postrider(["serve"], { ...nothing, DATA_DIR: folder, PORT: port });
    free();
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  test.each(["SMTP_HOST", "HOST"])("an address that this machine does not have: %s", async (name) => {
    const env = { ...nothing, DATA_DIR: newFolder("command"), [name]: "192.0.2.1" };
    const { code, stderr } = await postrider(["serve"], env);
    const words = `${name}: cannot listen at 192.0.2.1:0 (EADDRNOT`;
    expect([code, stderr]).toEqual([78, expect.stringContaining(words)]);
  });

  test.each(["SMTP_HOST", "HOST"])("a name that this machine cannot resolve: %s", async (name) => {
    const env = { ...nothing, DATA_DIR: newFolder("command"), [name]: "nobody.invalid" };
    const { code, stderr } = await postrider(["serve"], env);
    expect([code, stderr]).toEqual([
      78,
      expect.stringContaining(
        `${name}: cannot listen at nobody.invalid: this machine cannot look up that name`,
      ),
    ]);
  });

  test("a folder that it can neither find nor make", async () => {
    const { code, stderr } = await postrider(["serve"], { ...nothing, DATA_DIR: "/dev/null/data" });
    expect([code, stderr]).toEqual([
      70,
      "postrider: the folder /dev/null/data cannot be created (ENOTDIR)\n",
    ]);
  });

  test("a certificate that it cannot use, before it makes anything", async () => {
    const [one, other] = await Promise.all([makeCert(["one.test"]), makeCert(["other.test"])]);
    const folder = newFolder("certificate");
    const [keyFile, certFile] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    writeFileSync(keyFile, one.key);
    writeFileSync(certFile, other.cert);
    const rows: [key: string, cert: string, says: string][] = [
      ["/nowhere/key.pem", certFile, "SMTP_TLS_KEY: /nowhere/key.pem cannot be read (ENOENT)"],
      [keyFile, folder, `SMTP_TLS_CERT: ${folder} cannot be read (EISDIR)`],
      [keyFile, keyFile, `SMTP_TLS_CERT: ${keyFile} does not contain a PEM certificate (`],
      [keyFile, certFile, `SMTP_TLS_KEY and SMTP_TLS_CERT: the key in ${keyFile} does not belong to `],
    ];
    for (const [SMTP_TLS_KEY, SMTP_TLS_CERT, says] of rows) {
      const DATA_DIR = join(folder, "data");
      const ran = await postrider(["serve"], { ...nothing, DATA_DIR, SMTP_TLS_KEY, SMTP_TLS_CERT });
      expect([ran.code, ran.stderr]).toEqual([78, expect.stringContaining(`postrider: ${says}`)]);
      expect(existsSync(DATA_DIR)).toBe(false);
    }
  });

  test("a damaged database, and a folder in place of the master key", async () => {
    const { service, env } = captureService();
    await service.start();
    await service.terminate();
    const copy = join(newFolder("copy"), "copy.db");
    await postrider(["backup", copy], env);
    const bytes = readFileSync(copy);
    const start = async (database: Uint8Array, changed: (folder: string) => void) => {
      const DATA_DIR = newFolder("damaged");
      writeFileSync(join(DATA_DIR, "postrider.db"), database);
      changed(DATA_DIR);
      return { DATA_DIR, ran: await postrider(["serve"], { ...nothing, DATA_DIR }) };
    };
    const half = bytes.subarray(0, bytes.length / 2);
    const damaged = await start(half, () => undefined);
    expect([damaged.ran.code, damaged.ran.stderr]).toEqual([
      70,
      expect.stringContaining(
        "postrider: the database is damaged (SQLITE_CORRUPT): keep its files as they are",
      ),
    ]);
    expect(damaged.ran.stderr).toContain("a backup that was just put back, remove its -wal and -shm files");
    expect(readFileSync(join(damaged.DATA_DIR, "postrider.db")).equals(half)).toBe(true);
    const folder = await start(bytes, (at) => mkdirSync(join(at, "master.key")));
    expect([folder.ran.code, folder.ran.stderr]).toEqual([
      78,
      expect.stringContaining(`${join(folder.DATA_DIR, "master.key")} cannot be read (EISDIR)`),
    ]);
    await service.remove();
  });

  test("a database that it may not write", () => {
    // Root may write any file, so a read-only connection replaces it: SQLite gives the same error.
    const db = new Database(join(newFolder("command"), "x.db"));
    db.exec("PRAGMA query_only = ON");
    const write = (): void => {
      try {
        db.exec("CREATE TABLE a (b)");
      } catch (error) {
        explained(error);
      }
    };
    expect(write).toThrow("belong to the user of the service?");
    db.close();
  });

  test("a file that is not a database", async () => {
    const folder = newFolder("command");
    await Bun.write(join(folder, "postrider.db"), "Dear diary, ".repeat(1000));
    const { code, stderr } = await postrider(["serve"], { ...nothing, DATA_DIR: folder });
    expect([code, stderr]).toEqual([70, expect.stringContaining("the database's file holds something else")]);
  });

  test("a database whose log belongs to another user", () => {
    // SQLite reports it after the opening, which checks only the file.
    const error = Object.assign(new Error("unable to open database file"), { code: "SQLITE_CANTOPEN" });
    expect(() => explained(error)).toThrow("its -wal and -shm files");
  });

  test("a database in a folder that does not exist", async () => {
    const env = {
      ...nothing,
      DATA_DIR: newFolder("command"),
      DATABASE_URL: `file:${newFolder("command")}/gone/x.db`,
    };
    const ran = await postrider(["serve"], env);
    expect([ran.code, ran.stderr]).toEqual([70, expect.stringContaining("/gone/x.db cannot be opened")]);
  });
});

// Root may read any folder, but even root cannot follow a link to itself.
test.each(["keys list", "backup x.db", "migrate status", "doctor --json"])(
  "%s does not treat an unreadable database as a missing one",
  async (command) => {
    const folder = join(newFolder("command"), "loop");
    symlinkSync(folder, folder);
    const env = { DATA_DIR: newFolder("command"), DATABASE_URL: `file:${folder}/x.db` };
    const { code, stdout, stderr } = await postrider(command.split(" "), env);
    expect(code).not.toBe(0);
    expect(stdout + stderr).toContain(`it is not known whether ${folder}/x.db exists (ELOOP)`);
  },
);

test.each([
  ["a file in no folder", ["backup", "/nowhere/x.db"], 1, "/nowhere/x.db.part cannot be created (ENOENT)"],
  ["a flag's value that begins with a dash", ["readyz", "--timeout", "-3"], 64, "argument is ambiguous\n"],
])("%s is one sentence", async (_name, args, code, says) => {
  const folder = newFolder("command");
  await postrider(["migrate"], { DATA_DIR: folder });
  const ran = await postrider(args, { DATA_DIR: folder });
  expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(says)]);
});

test("`config` shows lists that are empty by default, and flags as they are set", async () => {
  const table = await onTerminal(["config"], { ALLOW_PRIVATE_MX: "1", DNS_SERVERS: "192.0.2.1" });
  expect(table).toMatch(/^DNS_SERVERS +192\.0\.2\.1 +environment$/m);
  expect(table).toMatch(/^PUBLIC_IPS +\(none\) +default$/m);
  expect(table).toMatch(/^HTTP_PROXIES +\(none\) +default$/m);
  expect(table).toMatch(/^ALLOW_PRIVATE_MX +1 +environment$/m);
  expect(table).toMatch(/^ALLOW_PRIVATE_WEBHOOKS +0 +default$/m);
});
