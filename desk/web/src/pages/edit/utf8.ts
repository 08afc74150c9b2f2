/** The text of bytes, or the number of the first line that is no UTF-8. */
export function textOf(bytes: Uint8Array): string | number {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const read = (of: Uint8Array): string | undefined => {
    try {
      return decoder.decode(of);
    } catch {
      return undefined;
    }
  };
  const text = read(bytes);
  if (text !== undefined) return text;
  let [line, from] = [1, 0];
  for (let to = bytes.indexOf(10); to >= 0 && read(bytes.subarray(from, to)) !== undefined; to = bytes.indexOf(10, from)) [line, from] = [line + 1, to + 1];
  return line;
}
