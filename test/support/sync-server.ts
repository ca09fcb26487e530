import { FRAME, type Log } from "./sync-server-log.ts";

/** An answer of the sync endpoints. */
export interface SyncAnswer {
  name: string;
  status: number;
  body: Buffer | object;
}

const GENERATION = 1;

/**
 * Answers the HTTP sync protocol of Turso Cloud's replicas: the current generation, the file it began with, and the
 * frames of its log. Returns null if the path is not part of it.
 */
export function syncAnswer(log: Log, method: string, path: string): SyncAnswer | null {
  if (path === "/info") return { name: "info", status: 200, body: { current_generation: GENERATION } };
  if (path.startsWith("/export/")) return { name: "export", status: 200, body: log.base() };
  const range = /^\/sync\/(\d+)\/(\d+)\/(\d+)/.exec(path);
  if (range === null) return null;
  // If a replica wrote its own file, it would push. Ours never does.
  if (method === "POST") return { name: "push", status: 403, body: { error: "not a primary of yours" } };
  const [generation, start, end] = range.slice(1).map(Number);
  const frames = generation === GENERATION ? log.frames(start ?? 1, end ?? 1) : Buffer.alloc(0);
  if (frames.length >= FRAME) return { name: "pull", status: 200, body: frames };
  // There is nothing newer, so the answer names the newest generation.
  return { name: "pull (nothing new)", status: 400, body: { generation: GENERATION } };
}
