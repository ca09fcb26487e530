/**
 * Measures the import of contacts from a table: `bun bench/imports.ts [--rows=N] [--json=FILE]`. The time until the last row is
 * committed, the highest memory of the service, and as a floor plain inserts of the same contacts. A customer who moves a list of a
 * million contacts would notice first if memory grew with the file.
 */
import { join } from "node:path";
import { startChild } from "./support/children.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder, copyOf } from "./support/folder.ts";
import { importedTable } from "./support/imported-contacts.ts";
import { numberOption } from "./support/options.ts";
import { forgetPeak, peakMemory } from "./support/peak-memory.ts";
import { prepareData, type Service, startService } from "./support/service.ts";

const ROWS = numberOption("rows", 1_000_000);
const POLL_MS = 500;
const MB = 1024 * 1024;
/** The part of an import that this bench needs. */
interface Import {
  id: string;
  status: string;
  rows: number;
  created: number;
}

/** Returns the file as the body of a request. */
function fileBody(): ReadableStream<Uint8Array> {
  const pieces = importedTable(ROWS);
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
  });
}

/** The processor time and memory of plain inserts of the same contacts. */
async function inserts(): Promise<{ processor: number; memory: number; seconds: number }> {
  const folder = copyOf(prepared.folder);
  const script = join(import.meta.dir, "support/floor-contacts.ts");
  const child = await startChild([process.execPath, script, join(folder, "postrider.db"), String(ROWS)], {
    ready: "ready",
    log: `${folder}-floor`,
    env: { BUN_JSC_forceRAMSize: "400000000" },
  });
  const begun = performance.now();
  const idle = peakMemory(child.pid);
  let memory = 0;
  while (!child.output().includes("stored")) {
    await Bun.sleep(POLL_MS);
    memory = Math.max(memory, peakIfAlive(child.pid));
  }
  const processor = Number(/stored (\d+)/.exec(await child.finished())?.[1]) / 1e6;
  return { processor, memory: memory - idle, seconds: (performance.now() - begun) / 1000 };
}

function peakIfAlive(pid: number): number {
  try {
    return peakMemory(pid);
  } catch {
    return 0;
  }
}

async function call(service: Service, method: string, path: string, body?: ReadableStream): Promise<Import> {
  const headers = { authorization: `Bearer ${prepared.key}`, "content-type": "text/csv" };
  const response = await fetch(service.url + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
  return (await response.json()) as Import;
}

/** The seconds and the highest memory of one part of the import. */
interface Part {
  seconds: number;
  processor: number;
  memory: number;
}

async function measured<Result>(
  service: Service,
  work: () => Promise<Result>,
): Promise<Part & { result: Result }> {
  const { pid } = service.child;
  forgetPeak(pid);
  const [begun, before] = [performance.now(), service.child.processor()];
  const result = await work();
  const seconds = (performance.now() - begun) / 1000;
  return { result, seconds, processor: (service.child.processor() - before) / 1e6, memory: peakMemory(pid) };
}

async function untilDone(service: Service, id: string): Promise<void> {
  for (;;) {
    const { status, rows, created } = await call(service, "GET", `/v1/imports/${id}`);
    if (status === "done" && created === ROWS) return;
    if (status === "done") throw new Error(`${created} of ${rows} rows are new`);
    await Bun.sleep(POLL_MS);
  }
}

const prepared = await prepareData(benchFolder());
const least = await inserts();
const service = await startService(prepared.folder, { QUOTA_CONTACTS: `${ROWS},${ROWS},none` });
const idle = peakMemory(service.child.pid);
const upload = await measured(service, () => call(service, "POST", "/v1/contacts/import", fileBody()));
const commit = await measured(service, () => untilDone(service, upload.result.id));
const processor = upload.processor + commit.processor;
const figures = {
  rows: ROWS,
  "upload, s": upload.seconds,
  "all committed, s": upload.seconds + commit.seconds,
  "upload, processor s": upload.processor,
  "commits, processor s": commit.processor,
  "plain inserts, s": least.seconds,
  "plain inserts, processor s": least.processor,
  "times the plain inserts": processor / least.processor,
  "memory at the start, MB": idle / MB,
  "highest memory of the upload, MB": upload.memory / MB,
  "highest memory of the commits, MB": commit.memory / MB,
  "growth of plain inserts, MB": least.memory / MB,
};
await service.child.end();
for (const [name, figure] of Object.entries(figures)) console.log(`${name}: ${figure.toFixed(1)}`);
handOver({ import: figures });
