import PostalMime, { type Attachment } from "postal-mime";

/** A part as the MIME reader keeps it. Its typings omit the tree. */
export interface MimePart {
  state: "header" | "body" | "finished";
  contentType: {
    parsed: { value: string; params: Record<string, string | undefined> };
    multipart: string | false;
  };
  contentDisposition: { parsed: { value: string; params: Record<string, string | undefined> } };
  contentTransferEncoding: { encoding: string };
  /** The lines of its header so far. */
  headerLines: readonly string[];
  /** Ours: true if its text has the commands of text/enriched. */
  isEnriched?: boolean;
  childNodes: MimePart[];
  parentNode: MimePart | null;
  /** Number of parts around it. */
  depth: number;
  content: ArrayBuffer | Uint8Array | null;
  contentDecoder: Decoder | null;
  feed: (line: Uint8Array) => void;
  setupContentDecoder: (encoding: string) => void;
  getTextContent: () => string;
}

/** The MIME reader's decoder for the lines of a body. */
interface Decoder {
  update: (line: Uint8Array) => void;
  finalize: () => Promise<ArrayBuffer>;
}

/** The bodies of a part or an alternative, by kind. */
export type TextEntry = Partial<Record<TextKind, { type: "text"; value: string }[]>>;
export type TextKind = "plain" | "html";

/** The steps of the MIME reader, and its state between them. */
export interface Reader {
  root: MimePart;
  currentNode: MimePart;
  /** Octets of all header lines so far, without line ends. */
  headerSize: number;
  boundaries: { value: Uint8Array; node: MimePart }[];
  forceRfc822Attachments: boolean;
  textMap: Map<MimePart, TextEntry>;
  textTypes: Set<TextKind>;
  textContent: Partial<Record<TextKind, string>>;
  attachments: Attachment[];
  processLine: (line: Uint8Array, isFinal: boolean) => Promise<void>;
  finalize: () => Promise<void>;
  collectNode: (part: MimePart, alternative: false, related: false) => Promise<void>;
  collectAttachment: (part: MimePart, content: ArrayBuffer, related: boolean, tooDeep: boolean) => void;
  renderTextContent: () => void;
}

/** Returns a MIME reader with the steps and the state that its declarations omit. */
export function openReader(options?: ConstructorParameters<typeof PostalMime>[0]): Reader {
  return new PostalMime(options) as unknown as Reader;
}

const UNREAD: Decoder = { update: () => undefined, finalize: () => Promise.resolve(new ArrayBuffer(0)) };

/** Makes the reader leave the part's body in place. */
export function leaveBody(part: MimePart): void {
  part.setupContentDecoder = () => {
    part.contentDecoder = UNREAD;
  };
}

/** Returns whether a part is shown as text unless it is a file. */
export function isText({ contentType }: MimePart): boolean {
  return /^text\/(?:plain|html)$/.test(contentType.parsed.value);
}
