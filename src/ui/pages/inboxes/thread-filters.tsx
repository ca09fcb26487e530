import type { Labelling } from "../../api/types.ts";
import { changedUrl } from "../../state/paths.ts";
import { navigate, place, query } from "../../state/router.ts";
import { isMe } from "../../state/reader.ts";
import { membersOf } from "./mailbox.ts";

interface FiltersProps {
  mailbox: Labelling | null;
  /** The path of the list. A choice closes the conversation. */
  listPath: string;
}

/** Filters threads by label, and by their assignee or the lack of one. Shows nothing if there are no labels and no members. */
export function ThreadFilters({ mailbox, listPath }: FiltersProps) {
  const labels = mailbox?.labels.map(({ label }) => ({ value: label, text: label })) ?? [];
  const members = membersOf(mailbox).map(({ id, email }) => ({
    value: id,
    text: isMe(id) ? "Assigned to me" : email,
  }));
  const assignees = members.length === 0 ? [] : [...members, { value: "none", text: "Nobody" }];
  return (
    <>
      <Filter name="label" label="Label" all="Any label" options={labels} listPath={listPath} />
      <Filter name="assignee" label="Assignee" all="Anyone" options={assignees} listPath={listPath} />
    </>
  );
}

interface FilterProps {
  name: string;
  label: string;
  all: string;
  options: readonly { value: string; text: string }[];
  listPath: string;
}

function Filter({ name, label, all, options, listPath }: FilterProps) {
  const value = query.value.get(name) ?? "";
  if (options.length === 0 && value === "") return null;
  const isListed = value === "" || options.some((option) => option.value === value);
  return (
    <select
      class="thread-filter"
      aria-label={label}
      value={value}
      onChange={(event) =>
        navigate(changedUrl(listPath, place.value.search, { [name]: event.currentTarget.value, inbox: null }))
      }
    >
      <option value="">{all}</option>
      {isListed ? null : <option value={value}>{value}</option>}
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.text}
        </option>
      ))}
    </select>
  );
}
