import { useSignal } from "@preact/signals";
import { browserPath } from "../api/client.ts";
import { CheckBox } from "../controls/form.tsx";

interface PreviewProps {
  /** The message whose html is shown. */
  messageId: string;
  title: string;
  /** Leaves out the choice of width and colours. */
  small?: boolean;
}

type Width = "desktop" | "phone";

/** The HTML of a message in a separate frame. */
export function Preview({ messageId, ...rest }: PreviewProps) {
  return <PagePreview path={`/v1/emails/${encodeURIComponent(messageId)}/preview`} {...rest} />;
}

interface PagePreviewProps extends Omit<PreviewProps, "messageId"> {
  /** A path of the service that shows html in its sandbox. */
  path: string;
}

/** HTML in a separate frame, which runs nothing, and loads nothing unless the user asks. */
export function PagePreview({ path, title, small = false }: PagePreviewProps) {
  const width = useSignal<Width>("desktop");
  // Most html is made for a light page, also in a dark mail program.
  const dark = useSignal(false);
  const images = useSignal(false);
  const src = browserPath(path, {
    images: images.value ? 1 : 0,
    theme: dark.value ? "dark" : "light",
  });
  return (
    <div class={small ? "preview small" : "preview"}>
      <div class="preview-bar">
        {small ? null : (
          <fieldset class="segments">
            <legend class="hidden">Width</legend>
            {(["desktop", "phone"] as const).map((one) => (
              <button
                key={one}
                type="button"
                aria-pressed={width.value === one}
                onClick={() => {
                  width.value = one;
                }}
              >
                {one === "desktop" ? "Desktop" : "Phone"}
              </button>
            ))}
          </fieldset>
        )}
        <CheckBox label="Dark, if it declares that" checked={dark} />
        <CheckBox label="Load remote images" checked={images} />
      </div>
      <div class={`preview-box ${width.value}`}>
        <iframe key={src} title={title} src={src} sandbox="" referrerpolicy="no-referrer" />
      </div>
    </div>
  );
}
