// A table as a file that spreadsheets read. What they would take for a formula is a text.

export type Cell = string | number | undefined;

export function csv(rows: Cell[][]): string {
  const cell = (v: Cell): string => {
    if (typeof v === 'number') return String(v);
    const text = /^[=+\-@\t\r]/.test(v ?? '') ? `'${v}` : (v ?? '');
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(',') + '\r\n').join('');
}

/** Hands a file to whoever sits before the page. */
export function save(name: string, text: string): void {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  a.download = name;
  a.click();
  URL.revokeObjectURL(a.href);
}
