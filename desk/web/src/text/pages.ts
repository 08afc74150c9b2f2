import words from './en.pages.json';
import { learn } from './text';

// The words of what is loaded when it is asked for.
learn(words);
