import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder, removeFolder } from "./folder.ts";
import { freePort } from "./redis.ts";

/** Debian keeps some where only root's PATH looks. */
export const PATH = `${process.env.PATH ?? ""}:/usr/sbin:/sbin`;

/** Returns why a test that needs this program cannot run here, or null if it can. */
export function toolMissing(...names: string[]): string | null {
  const missing = names.filter((name) => Bun.which(name, { PATH }) === null);
  return missing.length === 0 ? null : `${missing.join(", ")} is not installed`;
}

/** The title of a test, with the reason if it is skipped. */
export function titled(title: string, missing: string | null): string {
  return missing === null ? title : `${title} (skipped: ${missing})`;
}

/** Output and exit code of a program. */
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
 * Debian's unbound as a resolver. `stubs` maps each zone to the loopback port of its authority. It uses random
 * letter case and query name minimisation, and knows no other zones.
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

/**
 * Resolves once the words have been printed. Keeps reading after that, because a full pipe would stop the program.
 */
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
