/** Returns a size in words: `812 bytes`, `14.2 KiB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} ${bytes === 1 ? "byte" : "bytes"}`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** Returns a whole number with separators: `12,345`. */
export function countText(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** Returns a share from 0 to 1 as a percentage with as many digits as it needs: `0.25 %`, `4 %`. */
export function percentText(share: number): string {
  const percent = share * 100;
  if (percent === 0) return "0 %";
  return `${percent < 1 ? percent.toFixed(2) : percent.toFixed(percent < 10 ? 1 : 0)} %`;
}

/** Returns a count with its noun: `1 message`, `3 messages`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}
