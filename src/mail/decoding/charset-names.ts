/** Spellings of charset names that messages use and the runtime does not know, each with the name it knows. */
const SPELLINGS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/^(?:unicode-?[\d-]*)?utf-?8(?:-?mb[34]|n|-?sig|-?bom|-?strict|-?unicode(?:-ci)?)?$/, "utf-8"],
  [/^(?:unicode-?[\d-]*)?utf-?7$/, "utf-7"],
  [/^utf-?16-?(be|le)?$/, "utf-16$1"],
  [/^ucs-?2-?(be|le)?$/, "utf-16$1"],
  [/^(?:utf-?32|ucs-?4)-?(be|le)?$/, "utf-32$1"],
  [/^(?:win(?:dows)?|w|ansi|ms|microsoft)?-?(?:cp|code-?page)?-?(125\d|874)$/, "windows-$1"],
  [/^(?:ansi|ms-?ansi|win(?:dows)?-?(?:latin-?1|ansi))$/, "windows-1252"],
  [/^(?:iso)?-?8859-?(\d{1,2})(?:[-:].*)?$/, "iso-8859-$1"],
  [/^(?:iso-?)?latin-?([1-6])$/, "latin$1"],
  [/^latin-?7$/, "iso-8859-13"],
  [/^latin-?8$/, "iso-8859-14"],
  [/^latin-?[09]$/, "iso-8859-15"],
  [/^latin-?10$/, "iso-8859-16"],
  [/^koi-?8(?:-?(?:u|ru))$/, "koi8-u"],
  [/^koi-?8(?:-?r)?$/, "koi8-r"],
  [/^mac(?:intosh|-?os)?-?(?:roman)?$/, "macintosh"],
  [/^mac-?cyrillic$/, "x-mac-cyrillic"],
  [/^(?:dos|oem|ms-?dos|code-?page)-?(\d{3})$/, "cp$1"],
  [/^(?:gb-?k|gb-?2312(?:-?80)?)$/, "gbk"],
  [/^gb-?18030(?:-?\d{4})?$/, "gb18030"],
  [/^big-?5(?:-?(?:hkscs|eten|tw))?$/, "big5"],
  [/^s(?:hift)?-?jis$/, "shift_jis"],
  [/^euc-?(jp|kr)$/, "euc-$1"],
];

/**
 * Returns a charset's name as the runtime knows it, if it is only spelled differently: in quotes, with other
 * separators, or as databases and programming languages write it. Otherwise returns it in lower case.
 */
export function charsetName(written: string): string {
  const bare = written.toLowerCase().replace(/^[^a-z\d]+|[^a-z\d]+$/g, "");
  const plain = bare.replace(/^(?:x|cs)-/, "").replace(/[\s_.]+/g, "-");
  for (const [pattern, name] of SPELLINGS) if (pattern.test(plain)) return plain.replace(pattern, name);
  return bare;
}
