import type { Signal } from "@preact/signals";
import { base64Of } from "../api/base64.ts";
import type { FileContent } from "../api/types.ts";
import { sizeText } from "../words/amounts.ts";
import { Icon } from "./icon.tsx";

/** A file that a person has chosen. */
export interface ChosenFile extends FileContent {
  /** Bytes. */
  size: number;
}

interface FilesProps {
  files: Signal<readonly ChosenFile[]>;
  /** Most files. */
  limit: number;
}

async function read(file: File): Promise<ChosenFile> {
  return {
    filename: file.name,
    content: await base64Of(file),
    ...(file.type === "" ? {} : { contentType: file.type }),
    size: file.size,
  };
}

/** Returns files as a send carries them; undefined if there are none. */
export function attachmentsOf(files: readonly ChosenFile[]): FileContent[] | undefined {
  if (files.length === 0) return undefined;
  return files.map(({ size: _, ...file }) => file);
}

/** Chooses files to attach, and lists those that are chosen. */
export function Files({ files, limit }: FilesProps) {
  const add = async (input: HTMLInputElement) => {
    const chosen = await Promise.all([...(input.files ?? [])].map(read));
    files.value = [...files.value, ...chosen].slice(0, limit);
    input.value = "";
  };
  return (
    <div class="files">
      <label class="button small">
        <Icon name="attachment" />
        Attach files
        <input type="file" multiple class="hidden" onChange={(event) => void add(event.currentTarget)} />
      </label>
      <ul>
        {files.value.map((file) => (
          <li key={file.filename + file.size}>
            <span class="cut">{file.filename}</span>
            <span class="quiet">{sizeText(file.size)}</span>
            <button
              type="button"
              class="button bare"
              aria-label={`Remove ${file.filename}`}
              onClick={() => {
                files.value = files.value.filter((one) => one !== file);
              }}
            >
              <Icon name="cross" />
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
