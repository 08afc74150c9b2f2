// The tabs in which something is done, not only read. They are loaded when one of them is asked for.
import '../../text/acts';
export { default as collapse } from './Collapse.svelte';
export { default as simulate } from './Simulate.svelte';
export { default as try } from './Try.svelte';
export { default as who } from './Who.svelte';
