import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder, removeFolder } from "./folder.ts";
import { freePort } from "./redis.ts";

/** Debian keeps some where only root's PATH looks. */
const PATH = `${process.env.PATH ?? ""}:/usr/sbin:/sbin`;

/** Why a test that needs this program cannot run here; null where it can. */
export function toolMissing(...names: string[]): string | null {
  const missing = names.filter((name) => Bun.which(name, { PATH }) === null);
  return missing.length === 0 ? null : `${missing.join(", ")} is not installed`;
}

/** The title of a test, with why it is skipped. */
export function titled(title: string, missing: string | null): string {
  return missing === null ? title : `${title} (skipped: ${missing})`;
}

/** What a program prints, and its exit code. */
export async function run(command: readonly string[]): Promise<{ output: string; code: number }> {
  const child = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, PATH },
  });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { output: output + errors, code };
}

export interface TestUnbound {
  ip: string;
  port: number;
  stop(): Promise<void>;
}

/**
 * Debian's unbound as a resolver of its own. `stubs` says at which port of loopback the authority of a zone is; it asks
 * with random letter case, as little of a name as it can, and knows no other zones.
 */
export async function startUnbound(stubs: Readonly<Record<string, number>>): Promise<TestUnbound> {
  const folder = newFolder("unbound");
  const port = freePort();
  const config = join(folder, "unbound.conf");
  writeFileSync(config, unboundConfig(folder, port, stubs));
  const child = Bun.spawn(["unbound", "-d", "-c", config], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    env: { ...process.env, PATH },
  });
  await waitFor(child.stderr, "start of service");
  return {
    ip: "127.0.0.1",
    port,
    async stop() {
      child.kill();
      await child.exited;
      removeFolder(folder);
    },
  };
}

function unboundConfig(folder: string, port: number, stubs: Readonly<Record<string, number>>): string {
  const server = [
    "server:",
    `  directory: "${folder}"`,
    '  chroot: ""',
    '  username: ""',
    `  pidfile: "${folder}/pid"`,
    "  use-syslog: no",
    '  logfile: ""',
    "  verbosity: 1",
    `  interface: 127.0.0.1@${port}`,
    "  num-threads: 1",
    '  module-config: "iterator"',
    "  do-not-query-localhost: no",
    "  use-caps-for-id: yes",
    "  qname-minimisation: yes",
    "  qname-minimisation-strict: yes",
    "  aggressive-nsec: no",
    '  local-zone: "test." nodefault',
    "remote-control:",
    "  control-enable: no",
  ];
  const zones = Object.entries(stubs).flatMap(([name, at]) => [
    "stub-zone:",
    `  name: "${name}"`,
    `  stub-addr: 127.0.0.1@${at}`,
  ]);
  return `${[...server, ...zones].join("\n")}\n`;
}

/** Resolves once the words are read; goes on reading after that, since a full pipe would stop the program. */
function waitFor(stream: ReadableStream<Uint8Array<ArrayBuffer>>, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    void (async () => {
      const decoder = new TextDecoder();
      let seen = "";
      for await (const chunk of stream) {
        seen += decoder.decode(chunk, { stream: true });
        if (seen.includes(words)) resolve();
      }
      reject(new Error(`ended before it said ${words}: ${seen}`));
    })();
  });
}
