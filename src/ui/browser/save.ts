/** Saves a string as a file, as a download of the browser. */
export function saveFile(name: string, type: string, text: string | Blob): void {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  URL.revokeObjectURL(url);
}
