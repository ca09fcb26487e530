import { type FieldValue, SelectField, TextField, withChosen } from "../../controls/form.tsx";
import { percentText } from "../../words/amounts.ts";
import { planText, waitText } from "./ab-words.ts";
import type { Values } from "./values.ts";

const SHARES = ["0.1", "0.2", "0.3", "0.5", "1"];
const WAITS = ["60", "120", "240", "480", "1440", "2880"];
const MEASURES = [
  { value: "opens", text: "More opens" },
  { value: "clicks", text: "More clicks" },
];

interface AbFieldsProps {
  values: Values;
  /** Returns the value of a field of the draft. */
  fieldOf: (name: keyof Values) => FieldValue;
}

/** The other subject, and how both are tested once there is one. */
export function AbFields({ values, fieldOf }: AbFieldsProps) {
  const { otherSubject, share, waitMinutes, by } = values;
  const plan = {
    share: Number(share),
    waitMinutes: Number(waitMinutes),
    by: by === "clicks" ? ("clicks" as const) : ("opens" as const),
  };
  return (
    <>
      <TextField
        label="Second subject"
        name="abTest.subject"
        value={fieldOf("otherSubject")}
        hint={otherSubject === "" ? "Tests which one works better. Empty: all get the same." : planText(plan)}
      />
      {otherSubject === "" ? null : (
        <div class="field-pair">
          <SelectField
            label="Test with"
            name="abTest.share"
            value={fieldOf("share")}
            options={offered(SHARES, share, (one) =>
              one === "1" ? "All contacts" : `${percentText(Number(one))} of the contacts`,
            )}
          />
          {plan.share >= 1 ? null : (
            <SelectField
              label="Decide after"
              name="abTest.waitMinutes"
              value={fieldOf("waitMinutes")}
              options={offered(WAITS, waitMinutes, (one) => waitText(Number(one)))}
            />
          )}
          <SelectField label="Better is" name="abTest.by" value={fieldOf("by")} options={MEASURES} />
        </div>
      )}
    </>
  );
}

/** Returns the options in their order. The API takes others too, so the chosen value may be one of those. */
function offered(values: readonly string[], chosen: string, textOf: (value: string) => string) {
  const known = values.map((value) => ({ value, text: textOf(value) }));
  return withChosen(known, chosen, textOf(chosen)).toSorted(
    (one, other) => Number(one.value) - Number(other.value),
  );
}
