import { expect, test, vi } from 'vitest';

vi.stubGlobal('location', { search: '', origin: 'http://127.0.0.1:1' });
const { command } = await import('./command');

test('a command is one whatever machines and states are called', () => {
  expect(command('dialai', 'trust', 'history', 'refund-desk', '--state', 'a b')).toBe("dialai trust history refund-desk --state 'a b'");
  expect(command('dialai', '--x; rm -rf ~')).toBe("dialai '--x; rm -rf ~'");
  expect(command("it's", '$(id)', '')).toBe(`'it'\\''s' '$(id)' ''`);
});
