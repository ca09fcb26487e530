import { log } from "../../log.ts";
import { scanHtml } from "../../mail/text/html-scan.ts";
import type { Contents } from "../../store/contents/content-read.ts";
import { budgetOf } from "../../store/contents/memory-budget.ts";
import { listAttachments } from "../../store/messages/attachments.ts";
import { getContentStart } from "../../store/messages/message-content.ts";
import { readWhole } from "../mime/read-whole.ts";

/** The parts of a message in which a search looks for words. */
export interface MessageTexts {
  subject: string;
  /** Its text, and the words that its html shows. */
  bodies: string[];
  fileNames: string[];
}

/** Octets of a message's text, and of its html, that are searched. */
export const SEARCHED_OCTETS = 64 * 1024;
/** Maximum number of attachments whose names are searched. */
export const SEARCHED_FILES = 100;
/** Largest body that is read whole for its beginning. Only a body in the object store is. */
const MAX_READ_OCTETS = 16 * 1024 * 1024;

/** Reads the parts of a message. A body that cannot be read is left out, so that the subject is found. */
export async function readTexts(
  deps: Contents,
  { id, sender_id, subject }: { id: string; sender_id: string; subject: string },
): Promise<MessageTexts> {
  const files = await listAttachments(deps.db, sender_id, id);
  return {
    subject,
    bodies: await readBodies(deps, sender_id, id),
    fileNames: files.slice(0, SEARCHED_FILES).map(({ filename }) => filename),
  };
}

async function readBodies(deps: Contents, senderId: string, id: string): Promise<string[]> {
  try {
    const budget = budgetOf(MAX_READ_OCTETS);
    const start = await getContentStart({ ...deps, readWhole }, senderId, id, SEARCHED_OCTETS, budget);
    const html = start?.html.part ?? null;
    return [start?.text.part ?? "", html === null ? "" : scanHtml(html).text].filter((body) => body !== "");
  } catch (error) {
    log("search").warning("a body could not be read", { messageId: id, error: String(error) });
    return [];
  }
}
