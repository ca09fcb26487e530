import { openMail, partBytes } from "../reading/parse.ts";
import { readDmarcReport } from "./dmarc-report.ts";
import type { AggregateReport } from "./report.ts";
import { readTlsReport } from "./tls-report.ts";
import { MAX_UNPACKED_OCTETS, textsIn } from "./unpack.ts";

/** Maximum number of attachments that are examined. Reports come alone. */
export const MAX_ATTACHMENTS = 5;
/** Maximum number of documents in a message that are parsed. */
export const MAX_TEXTS = 5;

/** Returns the reports in a message. Empty if it has none that can be read within the limits. */
export async function readReports(raw: Uint8Array): Promise<AggregateReport[]> {
  for (const text of (await candidates(raw)).slice(0, MAX_TEXTS)) {
    const found = await reportsIn(text);
    if (found.length > 0) return found;
  }
  return [];
}

/** Returns the documents in a message that may be reports, those of attachments first. */
async function candidates(raw: Uint8Array): Promise<string[]> {
  const { attachments, text } = await openMail(raw);
  const room = { left: MAX_UNPACKED_OCTETS };
  const texts: string[] = [];
  for (const [ord, { size }] of attachments.slice(0, MAX_ATTACHMENTS).entries()) {
    const octets = size > room.left ? null : await partBytes(raw, ord);
    if (octets !== null) texts.push(...textsIn(octets, room));
  }
  return text?.whole === true ? [...texts, text.beginning] : texts;
}

async function reportsIn(given: string): Promise<AggregateReport[]> {
  const text = given.replace(/^\ufeff?\s*/, "");
  if (!text.startsWith("<")) return readTlsReport(text);
  const report = await readDmarcReport(text);
  return report === null ? [] : [report];
}
