import type { ComponentChildren } from "preact";
import { patch, post } from "../../api/client.ts";
import { FormDialog } from "../../controls/form-dialog.tsx";
import type { RecordFormProps } from "./page.tsx";

interface Props<Item> extends RecordFormProps<Item> {
  /** In lower case: `topic`. */
  noun: string;
  /** The path of the list in the API. */
  api: string;
  /** Returns the body that makes the record, or changes it. */
  body: () => object;
  /** `wide` for editors. */
  size?: "narrow" | "wide";
  /** The form cannot be submitted yet. */
  incomplete?: boolean;
  /** The fields. */
  children: ComponentChildren;
}

/** The window that makes a record, or changes one. */
export function RecordForm<Item extends { id: string; name: string }>(props: Props<Item>) {
  const { noun, api, record, body, onSaved, ...rest } = props;
  const save = async () =>
    onSaved(
      record === null
        ? await post<Item>(api, body())
        : await patch<Item>(`${api}/${encodeURIComponent(record.id)}`, body()),
    );
  return (
    <FormDialog
      title={record === null ? `Create a ${noun}` : `Edit ${record.name}`}
      verb={`${record === null ? "Create" : "Save"} ${noun}`}
      onSubmit={save}
      {...rest}
    />
  );
}
