import type { ContactProperty } from "../../api/types.ts";
import { type FieldValue, SelectField, TextField } from "../../controls/form.tsx";

type Type = ContactProperty["type"];

/**
 * Returns the value of a property that a field holds; null if it is empty. What has another type stays a string, so that the API
 * says what is wrong with it.
 */
export function propertyValue(text: string, type: Type): string | number | boolean | null {
  if (text === "") return null;
  if (type === "boolean") return text === "true";
  const number = Number(text);
  return type === "number" && !Number.isNaN(number) ? number : text;
}

/** Returns the value of a property as a person reads it. */
export function valueText(value: string | number | boolean): string {
  return typeof value === "boolean" ? (value ? "Yes" : "No") : String(value);
}

interface PropertyFieldProps {
  label: string;
  /** The field's name in the API. */
  name: string;
  type: Type;
  value: FieldValue;
  hint?: string | undefined;
}

/** A field for a value of a property. Empty: there is none. */
export function PropertyField({ type, value, ...rest }: PropertyFieldProps) {
  if (type === "boolean")
    return (
      <SelectField
        {...rest}
        value={value}
        options={[
          { value: "", text: "No value" },
          { value: "true", text: "Yes" },
          { value: "false", text: "No" },
        ]}
      />
    );
  return <TextField {...rest} value={value} type={inputType(type, value.value)} />;
}

/** Returns the type of the control. A date with a time of day stays a string. */
function inputType(type: Type, value: string): "number" | "date" | "text" {
  if (type === "number") return "number";
  return type === "date" && /^(?:\d{4}-\d\d-\d\d)?$/.test(value) ? "date" : "text";
}
