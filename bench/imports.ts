/**
 * Measures the import of contacts from a table: `bun bench/imports.ts [--rows=N] [--json=FILE]`. The time until the last row is
 * committed, the highest memory of the service, and as a floor the same file by the parser alone. A customer who moves a list of a
 * million contacts would notice first if memory grew with the file.
 */
import { csvRows } from "../src/flows/imports/csv-rows.ts";
import { handOver } from "./support/figures.ts";
import { benchFolder } from "./support/folder.ts";
import { numberOption } from "./support/options.ts";
import { forgetPeak, peakMemory } from "./support/peak-memory.ts";
import { prepareData, type Service, startService } from "./support/service.ts";

const ROWS = numberOption("rows", 1_000_000);
/** Rows generated at a time. */
const PIECE_ROWS = 500;
const POLL_MS = 500;
const MB = 1024 * 1024;
/** The part of an import that this bench needs. */
interface Import {
  id: string;
  status: string;
  rows: number;
  created: number;
}

const encoder = new TextEncoder();
/** Makes the file while it is read, so that neither process holds it. */
async function* file(): AsyncGenerator<Uint8Array> {
  yield encoder.encode("email,first_name,last_name,unsubscribed\n");
  for (let at = 0; at < ROWS; at += PIECE_ROWS) {
    const rows = Array.from({ length: Math.min(PIECE_ROWS, ROWS - at) }, (_, nth) => {
      const n = at + nth;
      return `person${n}@d${n % 997}.example,First${n % 5000},Last${n % 7000},${n % 10 === 0}\n`;
    });
    yield encoder.encode(rows.join(""));
  }
}

/** Returns the file as the body of a request. */
function fileBody(): ReadableStream<Uint8Array> {
  const pieces = file();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
  });
}

/** Returns the seconds that the parser alone takes. */
async function floor(): Promise<number> {
  const begun = performance.now();
  const reader = csvRows(() => null);
  let rows = 0;
  for await (const piece of file()) rows += reader.take(piece).length;
  rows += (await reader.end()).length;
  if (rows !== ROWS) throw new Error(`the parser has read ${rows} rows of ${ROWS}`);
  return (performance.now() - begun) / 1000;
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

/** Uploads the file, and waits until its last row is committed. */
async function importAll(service: Service): Promise<{ upload: number; whole: number }> {
  const begun = performance.now();
  const { id } = await call(service, "POST", "/v1/contacts/import", fileBody());
  const upload = (performance.now() - begun) / 1000;
  for (;;) {
    const { status, rows, created } = await call(service, "GET", `/v1/imports/${id}`);
    if (status === "done" && created === ROWS) break;
    if (status === "done") throw new Error(`${created} of ${rows} rows are new`);
    await Bun.sleep(POLL_MS);
  }
  return { upload, whole: (performance.now() - begun) / 1000 };
}

const prepared = await prepareData(benchFolder());
const least = await floor();
const service = await startService(prepared.folder, { QUOTA_CONTACTS: `${ROWS},${ROWS},none` });
const idle = peakMemory(service.child.pid);
forgetPeak(service.child.pid);
const processorBefore = service.child.processor();
const { upload, whole } = await importAll(service);
const figures = {
  rows: ROWS,
  "upload, s": upload,
  "all committed, s": whole,
  "service, processor s": (service.child.processor() - processorBefore) / 1e6,
  "parser alone, s": least,
  "memory at the start, MB": idle / MB,
  "highest memory, MB": peakMemory(service.child.pid) / MB,
};
await service.child.end();
for (const [name, figure] of Object.entries(figures)) console.log(`${name}: ${figure.toFixed(1)}`);
handOver({ import: figures });
