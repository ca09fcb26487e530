import type { Attachment } from "postal-mime";

/** A part as the MIME reader keeps it; its typings leave the tree out. */
interface MimeNode {
  content?: unknown;
  contentType?: { parsed?: { value?: unknown } };
  contentDisposition?: { parsed?: { value?: unknown } };
  contentTransferEncoding?: { encoding?: unknown };
  childNodes?: readonly MimeNode[];
}

/** Encodings whose lines are the content's own (RFC 2045 §6.2). */
const IDENTITY: ReadonlySet<string> = new Set(["", "7bit", "8bit", "binary"]);

/**
 * Gives attachments that are not base64 the bytes they came with. The MIME reader ends each of their lines with LF, and
 * the last one, too: yet a line end in the mail is CRLF (RFC 5322 §2.3), and the one before a delimiter is part of the
 * delimiter (RFC 2046 §5.1.1). In quoted-printable a LF may be the content's own, so there only the last one goes.
 * Of a calendar it gives text of its own making instead, whatever the encoding.
 */
export function restoreLineEnds(reader: object, attachments: Attachment[]): void {
  const { root } = reader as { root?: MimeNode };
  if (root === undefined) return;
  const encodings = new Map<unknown, string>();
  const files: ArrayBuffer[] = [];
  collect(root, encodings, files);
  for (const [at, attachment] of attachments.entries()) {
    if (files.length === attachments.length) attachment.content = files[at] ?? attachment.content;
    const encoding = encodings.get(attachment.content);
    if (encoding === undefined || typeof attachment.content === "string") continue;
    // A mail that is one file has no delimiter: its last line end is the file's.
    const whole = attachment.content === root.content && encoding !== "quoted-printable";
    const text = Buffer.from(new Uint8Array(attachment.content)).toString("latin1");
    const lines = whole ? text : text.replace(/\n$/, "");
    if (IDENTITY.has(encoding)) attachment.content = bytesOf(lines.replace(/\r?\n/g, "\r\n"));
    else if (encoding === "quoted-printable") attachment.content = bytesOf(lines);
  }
}

function bytesOf(text: string): ArrayBuffer {
  return new Uint8Array(Buffer.from(text, "latin1")).buffer;
}

/** Depth is bounded by the reader's own limit. */
function collect(node: MimeNode, encodings: Map<unknown, string>, files: ArrayBuffer[]): void {
  const encoding = node.contentTransferEncoding?.encoding;
  if (node.content instanceof ArrayBuffer) {
    encodings.set(node.content, typeof encoding === "string" ? encoding : "");
    if (isFile(node)) files.push(node.content);
  }
  for (const child of node.childNodes ?? []) collect(child, encodings, files);
}

/** Whether the reader makes an attachment of the part: of whatever is neither shown as text nor has parts of its own. */
function isFile({ contentType, contentDisposition }: MimeNode): boolean {
  const type = String(contentType?.parsed?.value);
  if (contentDisposition?.parsed?.value === "attachment") return !type.startsWith("multipart/");
  return !/^(?:text\/(?:plain|html)$|multipart\/)/.test(type);
}
