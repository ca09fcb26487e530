import { Problem } from "../controls/problem.tsx";
import { useTask } from "../controls/task.ts";
import { useKey } from "../state/keyboard.ts";
import { undo, type Undoable, undoables } from "../state/undo.ts";

/** Says what was just done, each with a button that undoes it. The key undoes the newest. */
export function Undo() {
  const task = useTask();
  const offers = undoables.value;
  const run = (offer: Undoable | undefined) => offer !== undefined && void task.run(() => undo(offer));
  useKey("z", () => run(undoables.peek().at(-1)));
  return (
    <div class="undo" role="status">
      {offers.map((offer, index) => (
        <p key={offer}>
          <span class="cut">{offer.text}</span>
          <button type="button" class="button small" disabled={task.busy.value} onClick={() => run(offer)}>
            Undo {index === offers.length - 1 ? <kbd>z</kbd> : null}
          </button>
        </p>
      ))}
      <Problem error={task.error.value} />
    </div>
  );
}
