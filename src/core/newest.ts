/** Sets what a key stands for, as the newest of a map that keeps so many; of one key more the one that was set longest ago goes. */
export function setNewest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  // A Map keeps the order of insertion.
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return;
  const oldest = map.keys().next();
  if (oldest.done !== true) map.delete(oldest.value);
}
