interface SwitchProps {
  on: boolean;
  /** What it turns on, for screen readers. */
  label: string;
  disabled: boolean;
  onTurn: () => void;
}

/** A switch with its state in a word. */
export function Switch({ on, label, disabled, onTurn }: SwitchProps) {
  return (
    <button
      type="button"
      class="switch"
      role="switch"
      aria-checked={on}
      aria-label={label}
      disabled={disabled}
      onClick={onTurn}
    >
      <span class="switch-track" aria-hidden="true" />
      {on ? "On" : "Off"}
    </button>
  );
}
