import words from './en.acts.json';
import { learn } from './text';

// The words of what is done with machines.
learn(words);
