import { useSignal } from "@preact/signals";
import { query } from "../state/router.ts";
import { SearchField } from "./search.tsx";

/** What the URL searches for: a part of a name as `q`, or words as `text`. */
export interface Searched {
  q: string | null;
  text: string | null;
}

/** Characters of the shortest word that the service looks for. */
const MIN_WORD_CHARS = 2;

interface WordSearchProps {
  label: string;
  /** The fields that a search without words looks at. */
  names: string;
  onSearch: (searched: Searched) => void;
}

/** A search field that looks for names, or for words in messages. */
export function WordSearch({ label, names, onSearch }: WordSearchProps) {
  const inWords = useSignal(query.value.has("text"));
  const given = query.value.get("text") ?? query.value.get("q") ?? "";
  const search = (typed: string) => {
    const text = inWords.value && typed.length >= MIN_WORD_CHARS ? typed : null;
    onSearch({ q: inWords.value || typed === "" ? null : typed, text });
  };
  return (
    <>
      <SearchField
        label={label}
        placeholder={inWords.value ? "Search words in messages" : `Search ${names}`}
        value={given}
        onSearch={search}
      />
      <select
        class="search-in"
        aria-label="Search in"
        value={inWords.value ? "words" : "names"}
        onChange={(event) => {
          inWords.value = event.currentTarget.value === "words";
          search(given);
        }}
      >
        <option value="names">Names</option>
        <option value="words">Words</option>
      </select>
    </>
  );
}
