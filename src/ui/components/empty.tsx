import type { ComponentChildren } from "preact";
import { Code } from "./copy.tsx";

interface EmptyProps {
  /** One sentence. */
  children: ComponentChildren;
  /** One button or link. */
  action?: ComponentChildren;
  /** The same as a command. */
  command?: string | undefined;
}

/** What stands in place of an empty list: one sentence, one button, and the same as a command. */
export function EmptyState({ children, action, command }: EmptyProps) {
  return (
    <div class="empty">
      <p>{children}</p>
      {action}
      {command === undefined ? null : <Code text={command} what="command" />}
    </div>
  );
}
