import { expect, test } from 'vitest';
import { toYaml } from './yaml';

test('a definition is written as people do, and what could be read as something else is quoted', () => {
  expect(toYaml({ machineName: 'refund-desk', risk: { maxError: 0.1 }, 'no': 'yes', prompt: 'Is it late?', rule: '= data.a == "b"', time: '12:30', n: '1', e: '', lines: 'a\nb', list: ['a', '- b', 1], closed: {}, specialists: [{ role: 'proposer', nested: { a: [] } }, {}, [1]] })).toBe(`machineName: refund-desk
risk:
  maxError: 0.1
"no": "yes"
prompt: Is it late?
rule: '= data.a == "b"'
time: "12:30"
"n": "1"
e: ""
lines: "a\\nb"
list: [a, "- b", 1]
closed: {}
specialists:
  - role: proposer
    nested:
      a: []
  - {}
  - [1]
`);
});
