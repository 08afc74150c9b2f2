export { default as Form } from './Form.svelte';
export { faults } from './valid';
