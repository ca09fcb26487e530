import { Code } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";

interface SecretProps {
  title: string;
  /** Name of its kind, such as `API key`. */
  what: string;
  secret: string;
  onClose: () => void;
}

/** A secret that the API shows only once. A click outside does not close it, so that it is not lost by accident. */
export function SecretDialog({ title, what, secret, onClose }: SecretProps) {
  return (
    <Dialog title={title} onClose={onClose} firm>
      <div class="dialog-body form">
        <Code text={secret} what={what} />
        <p>This is the only time that the {what} is shown. Keep it where only your program can read it.</p>
        <footer class="dialog-foot">
          <button type="button" class="button primary" onClick={onClose}>
            I have stored it
          </button>
        </footer>
      </div>
    </Dialog>
  );
}
