import { expect, test } from 'vitest';
import { csv } from './csv';

test('a table is a file that says the same, and never a formula', () => {
  expect(csv([['a', 'b'], [1.5, undefined], ['x, "y"', '=HYPERLINK("x")'], ['-1', 'l\nm']])).toBe('a,b\r\n1.5,\r\n"x, ""y""","\'=HYPERLINK(""x"")"\r\n\'-1,"l\nm"\r\n');
});
