import { useSignal } from "@preact/signals";
import { browserPath } from "../../api/client.ts";
import type { Message } from "../../api/types.ts";
import { sizeText } from "../../words/amounts.ts";

/** Types of pictures that browsers show and that run nothing. */
const PICTURES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
/** Largest file that the page shows, bytes. */
const MAX_SHOWN_BYTES = 10 * 1024 * 1024;

/** The files of a message. Pictures are shown, and PDF files when the reader asks. */
export function Attachments({ message: { id, attachments } }: { message: Message }) {
  return (
    <ul class="plain-rows">
      {attachments.map((file) => (
        <File
          key={file.id}
          file={file}
          path={`/v1/emails/${encodeURIComponent(id)}/attachments/${encodeURIComponent(file.id)}`}
        />
      ))}
    </ul>
  );
}

function File({ file, path }: { file: Message["attachments"][number]; path: string }) {
  const { filename, contentType, size } = file;
  const shows = size <= MAX_SHOWN_BYTES;
  return (
    <li>
      <a class="row columns-file" href={browserPath(path)} download={filename}>
        <span class="cut" dir="auto">
          {filename}
        </span>
        <span class="cut quiet">{contentType}</span>
        <span class="quiet">{sizeText(size)}</span>
      </a>
      {shows && PICTURES.has(contentType) ? (
        <img class="file-picture" src={browserPath(path)} alt={filename} loading="lazy" />
      ) : null}
      {shows && contentType === "application/pdf" ? <Pdf path={path} filename={filename} /> : null}
    </li>
  );
}

/**
 * A PDF file in the browser's own viewer, which runs apart from the page. A library that draws PDF files was weighed instead: 1.7 MB of
 * scripts (0.5 MB compressed) would read strangers' files with the rights of the page.
 */
function Pdf({ path, filename }: { path: string; filename: string }) {
  const open = useSignal(false);
  return (
    <div class="file-pdf">
      <button
        type="button"
        class="button small"
        aria-expanded={open.value}
        onClick={() => {
          open.value = !open.value;
        }}
      >
        {open.value ? "Close preview" : "Preview"}
      </button>
      {open.value ? <PdfFrame path={path} filename={filename} /> : null}
    </div>
  );
}

function PdfFrame({ path, filename }: { path: string; filename: string }) {
  if (!navigator.pdfViewerEnabled)
    return <p class="quiet">This browser shows no PDF files. Download it instead.</p>;
  return (
    <iframe
      title={`Preview of ${filename}`}
      src={`${browserPath(path, { inline: 1 })}#navpanes=0`}
      referrerpolicy="no-referrer"
    />
  );
}
