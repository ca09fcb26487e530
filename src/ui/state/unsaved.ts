import { useEffect } from "preact/hooks";
import { unsent } from "./draft.ts";

/** Returns the fields that an editor of that name held when it was left, if they were not saved. */
export function unsaved<Name extends string>(editor: string): Partial<Record<Name, string>> {
  return JSON.parse(unsent.get(editor) ?? "{}");
}

/** Keeps the fields of an editor until they are saved. The browser asks before it leaves the app with them. */
export function useUnsaved(editor: string, changed: boolean, fields: Readonly<Record<string, string>>): void {
  const text = JSON.stringify(fields);
  useEffect(() => {
    if (changed) unsent.set(editor, text);
    else unsent.delete(editor);
  }, [editor, changed, text]);
  useEffect(() => {
    const onLeave = (event: Event) => event.preventDefault();
    if (changed) addEventListener("beforeunload", onLeave);
    return () => removeEventListener("beforeunload", onLeave);
  }, [changed]);
}
