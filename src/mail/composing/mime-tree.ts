import { wrap as wrapBase64 } from "nodemailer/lib/base64";
import type MimeNode from "nodemailer/lib/mime-node";
import { encode, wrap } from "nodemailer/lib/qp";

/** RFC 2045 §6.7 (5): lines have at most 76 characters; two are kept for an "F" that is escaped, one for the "=". */
const QUOTED_PRINTABLE_CHARS = 73;

/**
 * The bytes of a composer's tree, with further header fields behind its own. Its own stream takes some twenty turns of the
 * event loop a mail; here the content is in memory, and one turn is enough.
 */
export function writeTree(root: MimeNode, fields: readonly string[]): Buffer {
  const chunks: string[] = [];
  write(root, chunks, fields);
  // An address beyond ASCII stands as UTF-8; everything else is ASCII.
  const raw = chunks.join("");
  return Buffer.from(raw.endsWith("\r\n") ? raw : `${raw}\r\n`, "utf8");
}

function write(node: MimeNode, chunks: string[], fields: readonly string[]): void {
  // The headers come first: building them settles the boundary.
  chunks.push(node.buildHeaders(), "\r\n", ...fields, "\r\n");
  if (!node.multipart) {
    chunks.push(contentOf(node));
    return;
  }
  for (const child of node.childNodes) {
    chunks.push(`--${node.boundary}\r\n`);
    write(child, chunks, []);
    // RFC 2046 §5.1.1: the line end before a boundary belongs to the boundary, not to the part.
    chunks.push("\r\n");
  }
  chunks.push(`--${node.boundary}--\r\n`);
}

function contentOf(node: MimeNode): string {
  const { content } = node;
  if (typeof content !== "string" && !Buffer.isBuffer(content)) return "";
  switch (node.getTransferEncoding()) {
    case "base64":
      return wrapBase64(
        (typeof content === "string" ? Buffer.from(content, "utf8") : content).toString("base64"),
      );
    case "quoted-printable":
      // A "From " that begins a line is escaped: an mbox on the way would put ">" before it and break the signature.
      return wrap(encode(content), QUOTED_PRINTABLE_CHARS).replace(/^From /gm, "=46rom ");
    default:
      return content.toString("latin1");
  }
}
