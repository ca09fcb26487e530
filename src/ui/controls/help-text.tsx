import { helpParts } from "../words/help.ts";

/** Text from the API that has code in backquotes. */
export function HelpText({ text }: { text: string }) {
  return <>{helpParts(text).map(({ text, code, at }) => (code ? <code key={at}>{text}</code> : text))}</>;
}
