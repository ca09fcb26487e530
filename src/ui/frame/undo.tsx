import { useTask } from "../controls/task.ts";
import { Problem } from "../controls/problem.tsx";
import { useKey } from "../state/keyboard.ts";
import { undoable, undoOffered } from "../state/undo.ts";

/** Says what was just done, with a button that undoes it. */
export function Undo() {
  const task = useTask();
  const offer = undoable.value;
  const run = () => task.run(undoOffered);
  useKey("z", () => void run());
  return (
    <div class="undo" role="status">
      {offer === null ? null : (
        <p>
          <span>{offer.text}</span>
          <button type="button" class="button small" disabled={task.busy.value} onClick={() => void run()}>
            Undo <kbd>z</kbd>
          </button>
        </p>
      )}
      <Problem error={task.error.value} />
    </div>
  );
}
