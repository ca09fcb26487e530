/** The service's promises, kept by the client: each is on disk before the next one counts. */
import { open, type FileHandle } from "node:fs/promises";
import { readFileSync } from "node:fs";

/** A `202` or a `250`. `n` numbers the item within its run and determines its recipient and its bytes. */
export interface Promised {
  kind: "send" | "mail";
  n: number;
  /** The message's id, as the answer named it. */
  id: string;
}

/** An append-only log of JSON lines. */
export interface Ledger {
  /** Writes a promise down. Resolves after fdatasync. */
  record(promised: Promised): Promise<void>;
  /** Promises on disk, read from the file. */
  entries(): Promised[];
  /** Promises written down so far. */
  count(kind: Promised["kind"]): number;
  close(): Promise<void>;
}

/** Number of items that no load brings. */
const NEVER = 10_000_000;

/** Writes down items that were never brought, as the control of a run: the check must miss each. */
export async function recordNever(ledger: Ledger, ...kinds: readonly Promised["kind"][]): Promise<void> {
  for (const kind of kinds) await ledger.record({ kind, n: NEVER, id: "msg_00000000000000000000000000" });
}

interface Pending {
  line: string;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/** Opens a new ledger in the file. */
export async function openLedger(path: string): Promise<Ledger> {
  const file = await open(path, "ax");
  const counts = { send: 0, mail: 0 };
  let waiting: Pending[] = [];
  let running: Promise<void> | null = null;
  const drain = async (): Promise<void> => {
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      await append(file, group);
    }
    running = null;
  };
  return {
    async record(promised) {
      await new Promise<void>((resolve, reject) => {
        waiting.push({ line: `${JSON.stringify(promised)}\n`, resolve, reject });
        running ??= drain();
      });
      counts[promised.kind]++;
    },
    entries: () =>
      readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        // The file's own shape: only this module writes it.
        .map((line) => JSON.parse(line) as Promised),
    count: (kind) => counts[kind],
    async close() {
      while (running !== null) await running;
      await file.close();
    },
  };
}

/** Makes one write and one fdatasync for all waiting promises. */
async function append(file: FileHandle, group: readonly Pending[]): Promise<void> {
  try {
    await file.write(group.map(({ line }) => line).join(""));
    await file.datasync();
    for (const { resolve } of group) resolve();
  } catch (error) {
    for (const { reject } of group) reject(error);
  }
}
