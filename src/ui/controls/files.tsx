import { type Signal, useSignal } from "@preact/signals";
import { base64Of } from "../api/base64.ts";
import type { ChosenFile } from "../state/draft.ts";
import { counted, sizeText } from "../words/amounts.ts";
import { Icon } from "./icon.tsx";

async function read(file: File): Promise<ChosenFile> {
  return {
    filename: file.name,
    content: await base64Of(file),
    ...(file.type === "" ? {} : { contentType: file.type }),
    size: file.size,
  };
}

/** Chooses files to attach, and lists those that are chosen. */
export function Files({
  files,
  limit,
}: {
  files: Pick<Signal<readonly ChosenFile[]>, "value">;
  limit: number;
}) {
  const left = useSignal(0);
  const add = async (input: HTMLInputElement) => {
    const chosen = await Promise.all([...(input.files ?? [])].map(read));
    const all = [...files.value, ...chosen];
    files.value = all.slice(0, limit);
    left.value = all.length - files.value.length;
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
            <span class="cut" dir="auto">
              {file.filename}
            </span>
            <span class="quiet">{sizeText(file.size)}</span>
            <button
              type="button"
              class="button bare"
              aria-label={`Remove ${file.filename}`}
              onClick={() => {
                left.value = 0;
                files.value = files.value.filter((one) => one !== file);
              }}
            >
              <Icon name="cross" />
            </button>
          </li>
        ))}
      </ul>
      {left.value === 0 ? null : (
        <p class="field-error" role="alert">
          A message takes {counted(limit, "file")}, so {counted(left.value, "file")}{" "}
          {left.value === 1 ? "was" : "were"} left out.
        </p>
      )}
    </div>
  );
}
