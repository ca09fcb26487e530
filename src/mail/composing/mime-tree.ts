import { wrap as wrapBase64 } from "nodemailer/lib/base64";
import type MimeNode from "nodemailer/lib/mime-node";
import { quotedPrintable } from "./quoted-printable.ts";

/** Whole header fields that stand before those of MIME and behind them, each with its CRLF. */
export interface Fields {
  before: string;
  behind: string;
}

/**
 * The bytes of a composer's tree. Its own stream takes some twenty turns of the event loop a mail; here the content is in
 * memory, and one turn is enough.
 */
export function writeTree(root: MimeNode, fields: Fields): Buffer {
  const chunks: string[] = [fields.before];
  write(root, chunks, fields.behind);
  const raw = chunks.join("");
  // An address beyond ASCII stands as UTF-8; everything else is ASCII.
  return Buffer.from(raw.endsWith("\r\n") ? raw : `${raw}\r\n`, "utf8");
}

function write(node: MimeNode, chunks: string[], behind: string): void {
  // The headers come first: building them settles the boundary.
  chunks.push(node.buildHeaders(), "\r\n", behind, "\r\n");
  if (!node.multipart) {
    chunks.push(contentOf(node));
    return;
  }
  for (const child of node.childNodes) {
    chunks.push(`--${node.boundary}\r\n`);
    write(child, chunks, "");
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
      return quotedPrintable(content);
    default:
      return content.toString("latin1");
  }
}
