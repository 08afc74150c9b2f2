import words from './en.edit.json';
import { learn } from './text';

// The words of the editor.
learn(words);
