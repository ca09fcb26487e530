const PREFIX = "postrider.";

/** Returns a choice that this browser keeps, or null. A browser may refuse storage. */
export function readChoice(name: string): string | null {
  try {
    return window.localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/** Keeps a choice in this browser. */
export function storeChoice(name: string, value: string): void {
  try {
    window.localStorage.setItem(PREFIX + name, value);
  } catch {
    // Without storage the choice holds until the page is closed.
  }
}
