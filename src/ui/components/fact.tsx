import type { ComponentChildren } from "preact";

/** One line of a list of facts (`<dl class="facts">`). */
export function Fact({ name, value }: { name: string; value: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd dir="auto">{value}</dd>
    </div>
  );
}
