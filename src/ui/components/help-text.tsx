import { helpParts } from "../words/help.ts";

/** A text of the API in which code stands in backquotes. */
export function HelpText({ text }: { text: string }) {
  return <>{helpParts(text).map(({ text, code, at }) => (code ? <code key={at}>{text}</code> : text))}</>;
}
