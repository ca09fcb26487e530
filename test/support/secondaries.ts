import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PATH, run } from "./dns-tools.ts";
import { newFolder, removeFolder } from "./folder.ts";

/** A key as our settings, dig and both programs name it. */
export interface TestKey {
  name: string;
  /** Base64. */
  secret: string;
}

export interface TestSecondary {
  port: number;
  /** Asks it for a name's records, and returns them as dig prints them, sorted. */
  ask(name: string, type: string): Promise<string[]>;
  stop(): Promise<void>;
}

export interface SecondaryOptions {
  port: number;
  /** Port of our name server. */
  primary: number;
  key: TestKey;
  /** Zones that it copies. */
  zones: readonly string[];
}

const PROGRAMS = {
  nsd: { command: (config: string) => ["nsd", "-d", "-c", config], config: nsdConfig },
  knot: { command: (config: string) => ["knotd", "-c", config], config: knotConfig },
};
export type SecondaryProgram = keyof typeof PROGRAMS;
export const SECONDARY_PROGRAMS = Object.keys(PROGRAMS) as SecondaryProgram[];

/** Starts Debian's nsd or knot on loopback as a secondary of our name server. */
export function startSecondary(program: SecondaryProgram, options: SecondaryOptions): TestSecondary {
  const folder = newFolder(program);
  const config = join(folder, "config");
  writeFileSync(config, PROGRAMS[program].config(folder, options));
  const child = Bun.spawn(PROGRAMS[program].command(config), {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
    env: { ...process.env, PATH },
  });
  return {
    port: options.port,
    async ask(name, type) {
      const at = ["+norec", "+short", "+tries=1", "+time=2", "-p", String(options.port), "@127.0.0.1"];
      const { output, code } = await run(["dig", ...at, name, type]);
      return code === 0 ? output.trim().split("\n").filter(Boolean).sort() : [];
    },
    async stop() {
      child.kill();
      await child.exited;
      removeFolder(folder);
    },
  };
}

function nsdConfig(folder: string, { port, primary, key, zones }: SecondaryOptions): string {
  const at = (name: string): string => join(folder, name);
  return `server:
  ip-address: 127.0.0.1@${port}
  username: ""
  chroot: ""
  zonesdir: "${folder}"
  database: ""
  logfile: "${at("log")}"
  pidfile: "${at("pid")}"
  xfrdfile: "${at("xfrd")}"
  xfrdir: "${folder}"
  zonelistfile: "${at("zones")}"
  cookie-secret-file: "${at("cookies")}"
  rrl-ratelimit: 0
  server-count: 1
remote-control:
  control-enable: no
key:
  name: ${key.name}
  algorithm: hmac-sha256
  secret: "${key.secret}"
${zones
  .map(
    (zone) => `zone:
  name: ${zone}
  zonefile: "${at(zone)}"
  allow-notify: 127.0.0.1 ${key.name}
  request-xfr: 127.0.0.1@${primary} ${key.name}
`,
  )
  .join("")}`;
}

function knotConfig(folder: string, { port, primary, key, zones }: SecondaryOptions): string {
  return `server:
  listen: 127.0.0.1@${port}
  rundir: ${folder}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: ${folder}
log:
  - target: ${join(folder, "log")}
    any: info
key:
  - id: ${key.name}
    algorithm: hmac-sha256
    secret: ${key.secret}
remote:
  - id: primary
    address: 127.0.0.1@${primary}
    key: ${key.name}
acl:
  - id: notify
    address: 127.0.0.1
    key: ${key.name}
    action: notify
template:
  - id: default
    storage: ${folder}
    master: primary
    acl: notify
zone:
${zones.map((zone) => `  - domain: ${zone}\n`).join("")}`;
}
