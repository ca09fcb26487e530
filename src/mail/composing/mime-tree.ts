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
  const encoding = node.getTransferEncoding();
  // The headers come first: building them settles the boundary.
  chunks.push(headersOf(node, encoding), "\r\n", behind, "\r\n");
  if (!node.multipart) {
    chunks.push(contentOf(node, encoding));
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

/** Headers of text parts, by the composer's few types and encodings: to build them takes longer than to encode a text. */
const textHeaders = new Map<string, string>();

function headersOf(node: MimeNode, encoding: Encoding): string {
  // A text alone has its content as a string, and within a tree it has no fields but these two.
  if (typeof node.content !== "string" || node.parentNode === undefined) return node.buildHeaders();
  const key = `${node.getHeader("Content-Type")} ${encoding}`;
  const known = textHeaders.get(key);
  if (known !== undefined) return known;
  const built = node.buildHeaders();
  textHeaders.set(key, built);
  return built;
}

type Encoding = ReturnType<MimeNode["getTransferEncoding"]>;

function contentOf({ content }: MimeNode, encoding: Encoding): string {
  if (typeof content !== "string" && !Buffer.isBuffer(content)) return "";
  switch (encoding) {
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
