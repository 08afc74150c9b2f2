// The text of a stream as events, however it is cut into pieces.

export interface StreamEvent {
  id: string;
  kind: string;
  data: string;
}

export class Events {
  #rest = '';
  #kind = '';
  #data: string[] = [];
  #ends = false;
  id = '';
  retry = 2000;

  /** The events that are whole with one more piece. */
  add(piece: string): StreamEvent[] {
    const list: StreamEvent[] = [];
    let text = this.#rest + piece;
    if (this.#ends && text.startsWith('\n')) text = text.slice(1); // of \r\n
    let from = 0;
    for (let i = 0; i < text.length; i++) {
      const c = text[i];
      if (c !== '\n' && c !== '\r') continue;
      this.#line(text.slice(from, i), list);
      if (c === '\r' && text[i + 1] === '\n') i++;
      from = i + 1;
    }
    this.#ends = text.endsWith('\r');
    this.#rest = text.slice(from);
    return list;
  }

  #line(line: string, list: StreamEvent[]): void {
    if (line === '') {
      if (this.#data.length > 0) list.push({ id: this.id, kind: this.#kind || 'message', data: this.#data.join('\n') });
      this.#kind = '';
      this.#data = [];
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'event') this.#kind = value;
    else if (name === 'data') this.#data.push(value);
    else if (name === 'id' && !value.includes('\0')) this.id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) this.retry = Number(value);
  }
}
