import type { ComponentChildren } from "preact";
import { Code } from "../controls/copy.tsx";

interface EmptyProps {
  /** One sentence. */
  children: ComponentChildren;
  /** One button or link. */
  action?: ComponentChildren;
  /** A command that does it too. */
  command?: string | undefined;
}

/** The contents of an empty list: one sentence, one button, and a command that does the same. */
export function EmptyState({ children, action, command }: EmptyProps) {
  return (
    <div class="empty">
      <p>{children}</p>
      {action}
      {command === undefined ? null : <Code text={command} what="command" />}
    </div>
  );
}
