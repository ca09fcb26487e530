import { useEffect, useRef } from "preact/hooks";
import { after } from "../browser/clock.ts";
import { Icon } from "../controls/icon.tsx";

/** The search starts after a pause in typing of this length. */
const PAUSE_MS = 180;

interface SearchProps {
  label: string;
  placeholder: string;
  value: string;
  onSearch: (text: string) => void;
}

/** A search field. The key `/` focuses it. */
export function SearchField({ label, placeholder, value, onSearch }: SearchProps) {
  const input = useRef<HTMLInputElement>(null);
  const cancel = useRef(() => {});
  // The search in the URL replaces the field's, unless the person is typing.
  useEffect(() => {
    const field = input.current;
    if (field !== null && document.activeElement !== field) field.value = value;
  }, [value]);
  const search = (text: string) => {
    cancel.current();
    cancel.current = after(PAUSE_MS, () => onSearch(text.trim()));
  };
  useEffect(() => {
    // Input that was typed before the app took over the page.
    const typed = input.current?.value ?? "";
    if (typed.trim() !== value) search(typed);
    return () => cancel.current();
  }, []);
  return (
    <div class="search">
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        data-search
        aria-label={label}
        placeholder={placeholder}
        defaultValue={value}
        autoComplete="off"
        spellcheck={false}
        onInput={(event) => search(event.currentTarget.value)}
      />
      <kbd>/</kbd>
    </div>
  );
}
