import { useSignal } from "@preact/signals";
import { mayOpen, SECTIONS } from "./routes.ts";
import { chooseSingleKeys, type Shortcut, singleKeys } from "../state/keyboard.ts";
import { Dialog } from "../controls/dialog.tsx";
import { CheckBox } from "../controls/form.tsx";

const GENERAL: readonly Shortcut[] = [
  { keys: "/", does: "Search the list" },
  { keys: "j", does: "Next row" },
  { keys: "k", does: "Previous row" },
  { keys: "Enter", does: "Open the row" },
  { keys: "x", does: "Select the row" },
  { keys: "X", does: "Select all rows from the last one" },
  { keys: "Esc", does: "Close the detail or the window" },
  { keys: "c", does: "Compose a message" },
  { keys: "z", does: "Undo, for ten seconds" },
  { keys: "p", does: "Pause the live tail" },
  { keys: "?", does: "Show this help" },
];

const THREADS: readonly Shortcut[] = [
  { keys: "r", does: "Reply" },
  { keys: "a", does: "Reply to all" },
  { keys: "f", does: "Forward" },
  { keys: "n", does: "Write a note" },
  { keys: "t", does: "Choose a canned reply" },
  { keys: "d", does: "Go to a proposed draft" },
  { keys: "Ctrl+Enter", does: "Send what is written" },
  { keys: "e", does: "Archive" },
  { keys: "b", does: "Snooze" },
  { keys: "l", does: "Label" },
  { keys: "i", does: "Assign" },
  { keys: "u", does: "Mark as unread" },
  { keys: "U", does: "Mark selected as read" },
  { keys: "!", does: "Move to spam" },
  { keys: "#", does: "Move to trash" },
];

/** Every shortcut, and the switch that turns them off. */
export function Help({ onClose }: { onClose: () => void }) {
  const enabled = useSignal(singleKeys.value);
  return (
    <Dialog title="Keyboard" size="wide" onClose={onClose}>
      <div class="dialog-body">
        <div class="shortcuts">
          <Shortcuts title="Everywhere" shortcuts={GENERAL} />
          <Shortcuts title="Conversation, or selected rows" shortcuts={THREADS} />
          <Shortcuts
            title="Go to"
            shortcuts={SECTIONS.filter(mayOpen).map(({ key, name }) => ({ keys: `g ${key}`, does: name }))}
          />
        </div>
        <p>
          <a href="/docs/guide">Guides</a> · <a href="/docs">API reference</a>
        </p>
        <CheckBox label="Use single-key shortcuts" checked={enabled} onChange={chooseSingleKeys} />
      </div>
    </Dialog>
  );
}

function Shortcuts({ title, shortcuts }: { title: string; shortcuts: readonly Shortcut[] }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl class="keys">
        {shortcuts.map(({ keys, does }) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
