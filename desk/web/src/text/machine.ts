import words from './en.machine.json';
import { learn } from './text';

// The words of the page of a machine.
learn(words);
