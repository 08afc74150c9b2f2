import { expect, test } from 'vitest';
import { Events, type StreamEvent } from './sse';

const stream = 'retry: 250\nid: a\nevent: one\ndata: {"x":1}\n\n: nothing\n\ndata: a\ndata: b\n\nid: c\r\nevent: two\r\ndata:no blank\r\n\r\ndata: last\rid: d\r\revent: none\n\n';
const want: StreamEvent[] = [
  { id: 'a', kind: 'one', data: '{"x":1}' },
  { id: 'a', kind: 'message', data: 'a\nb' },
  { id: 'c', kind: 'two', data: 'no blank' },
  { id: 'd', kind: 'message', data: 'last' },
];

test('events are the same however the stream is cut', () => {
  for (let first = 0; first <= stream.length; first++) {
    for (const size of [1, 2, 3, 7, stream.length]) {
      const events = new Events();
      const got = events.add(stream.slice(0, first));
      for (let at = first; at < stream.length; at += size) got.push(...events.add(stream.slice(at, at + size)));
      expect(got).toEqual(want);
      expect([events.id, events.retry]).toEqual(['d', 250]);
    }
  }
});

test('what is not whole is no event', () => {
  const events = new Events();
  expect(events.add('data: x\n')).toEqual([]);
  expect(events.add('id: 1\n')).toEqual([]);
  expect(events.add('\n')).toEqual([{ id: '1', kind: 'message', data: 'x' }]);
});

test('a retry that is no number, and an id with a null, are not taken', () => {
  const events = new Events();
  events.add('retry: soon\nid: a\0b\nfield\n\n');
  expect([events.id, events.retry]).toEqual(['', 2000]);
});
